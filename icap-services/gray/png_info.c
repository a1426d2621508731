#include "gray/png_info.h"

#include "gray/exif.h"

enum {
    SIGNATURE = 8,
    CHUNK_HEAD = 8, /* length and name */
    CHUNK_CHECKSUM = 4,
    HEADER_LENGTH = 13,
    COLOR_PALETTE = 3,
    COLOR_GRAY = 0,
    COLOR_GRAY_ALPHA = 4,
    COLOR_RGB_ALPHA = 6,
};

static uint32_t png_info_number_at(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool palette_is_gray(const unsigned char *entries, uint32_t length) {
    for (uint32_t i = 0; i + 2 < length; i += 3)
        if (entries[i] != entries[i + 1] || entries[i] != entries[i + 2])
            return false;
    return true;
}

/* Viewers ignore other values: these are the limits of libpng. */
static uint32_t usable_gamma(uint32_t gamma) {
    enum { LEAST = 16, MOST = 625000000 };
    return gamma >= LEAST && gamma <= MOST ? gamma : 0;
}

static bool png_info_read_header(struct png_info *info, const unsigned char *data, uint32_t length,
                                 unsigned *color) {
    if (length != HEADER_LENGTH)
        return false;
    info->width = png_info_number_at(data);
    info->height = png_info_number_at(data + 4);
    info->pixels = (uint64_t)info->width * info->height;
    *color = data[9];
    info->is_gray = *color == COLOR_GRAY || *color == COLOR_GRAY_ALPHA;
    info->has_alpha = *color == COLOR_GRAY_ALPHA || *color == COLOR_RGB_ALPHA;
    info->is_interlaced = data[12] != 0;
    return true;
}

bool png_info_read(struct png_info *info, struct slice bytes) {
    const unsigned char *at = (const unsigned char *)bytes.base, *end = at + bytes.length;
    unsigned color = 0;
    bool seen_data = false;
    *info = (struct png_info){0};
    if (!slice_starts_with(bytes, SLICE("\x89PNG\r\n\x1a\n")))
        return false;
    for (at += SIGNATURE; end - at >= CHUNK_HEAD;) {
        uint32_t length = png_info_number_at(at);
        const unsigned char *name = at + 4, *data = at + CHUNK_HEAD;
        if (memcmp(name, "IDAT", 4) == 0)
            seen_data = true;
        if ((uint64_t)(end - data) < (uint64_t)length + CHUNK_CHECKSUM)
            break;
        info->is_whole = memcmp(name, "IEND", 4) == 0;
        if (info->is_whole)
            break;
        if (memcmp(name, "IHDR", 4) == 0 && !png_info_read_header(info, data, length, &color))
            return false;
        if (memcmp(name, "PLTE", 4) == 0 && color == COLOR_PALETTE) {
            info->is_gray = palette_is_gray(data, length);
            info->palette_at = (size_t)(data - (const unsigned char *)bytes.base);
            info->palette_length = length;
        }
        if (memcmp(name, "gAMA", 4) == 0 && length == 4 && info->gamma == 0 && !seen_data)
            info->gamma = usable_gamma(png_info_number_at(data));
        if (memcmp(name, "tRNS", 4) == 0)
            info->has_alpha = true;
        if (memcmp(name, "acTL", 4) == 0)
            info->is_animated = true;
        if (memcmp(name, "eXIf", 4) == 0 && !seen_data)
            info->is_turned =
                exif_orientation(slice_make((const char *)data, length)) >= EXIF_TURNED;
        at = data + length + CHUNK_CHECKSUM;
    }
    return seen_data && info->pixels > 0;
}
