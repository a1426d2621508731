#include "gray/png_chunks.h"

#include "gray/tiff.h"

#include <png.h>
#include <zlib.h>

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
    info->width = png_get_uint_32(data);
    info->height = png_get_uint_32(data + 4);
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
        uint32_t length = png_get_uint_32(at);
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
            info->gamma = usable_gamma(png_get_uint_32(data));
        if (memcmp(name, "tRNS", 4) == 0)
            info->has_alpha = true;
        /* PNG, third edition, 11.3.6.1: it stands before the first IDAT, and 0 frames are none. */
        if (memcmp(name, "acTL", 4) == 0 && length == 8 && !seen_data)
            info->is_animated = png_get_uint_32(data) > 0;
        if (memcmp(name, "eXIf", 4) == 0 && !seen_data)
            info->is_turned =
                exif_orientation(slice_make((const char *)data, length)) >= EXIF_TURNED;
        at = data + length + CHUNK_CHECKSUM;
    }
    return seen_data && info->pixels > 0;
}

enum { NAME = 4, NO_DATA = CHUNK_HEAD + CHUNK_CHECKSUM };

static bool png_strip_is_called(const unsigned char *chunk, const char *name) {
    return memcmp(chunk + NAME, name, NAME) == 0;
}

static bool is_about_it(const unsigned char *chunk) {
    return png_strip_is_called(chunk, "tEXt") || png_strip_is_called(chunk, "zTXt") ||
           png_strip_is_called(chunk, "iTXt") || png_strip_is_called(chunk, "tIME");
}

/* Gives the chunk other data, with its length and checksum. Returns the length of the chunk. */
static size_t png_strip_fill(unsigned char *chunk, struct slice data) {
    png_save_uint_32(chunk, (png_uint_32)data.length);
    memcpy(chunk + CHUNK_HEAD, data.base, data.length);
    uLong sum = crc32(0, chunk + NAME, (uInt)(NAME + data.length));
    png_save_uint_32(chunk + CHUNK_HEAD + data.length, (png_uint_32)sum);
    return data.length + NO_DATA;
}

/* The length that the chunk shall have; 0: it goes. */
static size_t png_strip_keep(unsigned char *chunk, size_t length) {
    char room[EXIF_MINIMAL];
    if (is_about_it(chunk))
        return 0;
    if (!png_strip_is_called(chunk, "eXIf"))
        return length;
    struct slice exif =
        exif_stripped(slice_make((const char *)chunk + CHUNK_HEAD, length - NO_DATA), room);
    if (exif.length == 0)
        return 0;
    return exif.length < length - NO_DATA ? png_strip_fill(chunk, exif) : length;
}

size_t png_strip(unsigned char *bytes, size_t length) {
    unsigned char *at = bytes + SIGNATURE, *to = at, *end = bytes + length;
    while (end - at >= NO_DATA) {
        uint64_t whole = NO_DATA + (uint64_t)png_get_uint_32(at);
        if ((uint64_t)(end - at) < whole)
            break;
        size_t kept = png_strip_keep(at, (size_t)whole);
        memmove(to, at, kept);
        to += kept;
        at += whole;
    }
    memmove(to, at, (size_t)(end - at));
    return (size_t)(to - bytes) + (size_t)(end - at);
}
