#include "gray/bmp_gray.h"

#include <stdlib.h>

enum {
    FILE_HEADER = 14,
    CORE_HEADER = 12, /* of OS/2, with sizes of 16 bits and palette entries of 3 bytes */
    OS2_SHORT_HEADER = 16,
    INFO_HEADER = 40,
    MASKED_HEADER = 52, /* from here on it holds the masks */
    ALPHA_HEADER = 56,
    OS2_HEADER = 64,
    LARGEST_HEADER = 124,
    GRAYS = 256,
    OUT_PIXELS = FILE_HEADER + INFO_HEADER + 4 * GRAYS,
};

/* biCompression. */
enum { PLAIN = 0, RLE8 = 1, RLE4 = 2, MASKS = 3, ALPHA_MASKS = 6 };

enum channel { RED, GREEN, BLUE, ALPHA, CHANNELS };

/* A channel of a pixel: bits side by side. */
struct field {
    uint32_t mask, most;
    unsigned shift;
};

struct bmp {
    const unsigned char *bytes;
    size_t length;
    uint32_t header, compression, colors;
    uint64_t width, height;
    bool from_above;
    unsigned bits;
    size_t palette_at, pixels_at;
    struct field fields[CHANNELS];
};

static uint32_t bmp_gray_number_at(const unsigned char *at, unsigned size) {
    uint32_t number = 0;
    for (unsigned i = size; i-- > 0;)
        number = number << 8 | at[i];
    return number;
}

static void bmp_gray_put_number(unsigned char *at, uint32_t number, unsigned size) {
    for (unsigned i = 0; i < size; i++)
        at[i] = (unsigned char)(number >> 8 * i);
}

/* ---- the headers -------------------------------------------------------------------------- */

static bool set_field(struct field *field, uint32_t mask) {
    *field = (struct field){.mask = mask};
    if (mask == 0)
        return true;
    field->shift = (unsigned)__builtin_ctz(mask);
    field->most = mask >> field->shift;
    return (field->most & (field->most + 1)) == 0;
}

static bool set_fields(struct bmp *bmp, const uint32_t masks[CHANNELS]) {
    bool good = true;
    for (int i = 0; i < CHANNELS; i++)
        good &= set_field(&bmp->fields[i], masks[i]);
    return good;
}

/* False: there are no masks, or they are bad. */
static bool read_masks(struct bmp *bmp) {
    static const uint32_t five[CHANNELS] = {0x7c00, 0x3e0, 0x1f, 0};
    static const uint32_t eight[CHANNELS] = {0xff0000, 0xff00, 0xff, 0};
    if (bmp->compression == PLAIN)
        return set_fields(bmp, bmp->bits == 16 ? five : eight);
    uint32_t masks[CHANNELS] = {0};
    bool inside = bmp->header >= MASKED_HEADER;
    bool has_alpha = inside ? bmp->header >= ALPHA_HEADER : bmp->compression == ALPHA_MASKS;
    unsigned count = has_alpha ? CHANNELS : CHANNELS - 1;
    if (bmp->length < FILE_HEADER + INFO_HEADER + 4 * count)
        return false;
    for (unsigned i = 0; i < count; i++)
        masks[i] = bmp_gray_number_at(bmp->bytes + FILE_HEADER + INFO_HEADER + 4 * i, 4);
    return set_fields(bmp, masks);
}

static void read_core_header(struct bmp *bmp) {
    const unsigned char *at = bmp->bytes + FILE_HEADER;
    bmp->width = bmp_gray_number_at(at + 4, 2);
    bmp->height = bmp_gray_number_at(at + 6, 2);
    bmp->bits = bmp_gray_number_at(at + 10, 2);
}

static void read_info_header(struct bmp *bmp) {
    const unsigned char *at = bmp->bytes + FILE_HEADER;
    uint32_t height = bmp_gray_number_at(at + 8, 4);
    bmp->width = bmp_gray_number_at(at + 4, 4);
    bmp->from_above = height > INT32_MAX;
    bmp->height = bmp->from_above ? (uint64_t)UINT32_MAX + 1 - height : height;
    bmp->bits = bmp_gray_number_at(at + 14, 2);
    bmp->compression = bmp->header > OS2_SHORT_HEADER ? bmp_gray_number_at(at + 16, 4) : PLAIN;
    bmp->colors = bmp->header > OS2_SHORT_HEADER ? bmp_gray_number_at(at + 32, 4) : 0;
}

/* Is the picture of a kind that is understood? All kinds are, except those that hold a file of
 * another format. */
static bool bmp_gray_is_known(const struct bmp *bmp) {
    switch (bmp->compression) {
    case PLAIN:
        return bmp->bits == 1 || bmp->bits == 4 || bmp->bits == 8 || bmp->bits == 16 ||
               bmp->bits == 24 || bmp->bits == 32;
    case RLE8: return bmp->bits == 8 && !bmp->from_above;
    case RLE4: return bmp->bits == 4 && !bmp->from_above;
    case MASKS:
    case ALPHA_MASKS:
        /* 64: facsimile of OS/2, and a run-length coding */
        return bmp->header != OS2_HEADER && (bmp->bits == 16 || bmp->bits == 32);
    default: return false;
    }
}

/* NULL, or why it is refused. */
static const char *read_headers(struct bmp *bmp) {
    if (bmp->length < FILE_HEADER + CORE_HEADER)
        return "not a whole BMP";
    bmp->header = bmp_gray_number_at(bmp->bytes + FILE_HEADER, 4);
    bool known = bmp->header == CORE_HEADER || bmp->header == OS2_SHORT_HEADER ||
                 (bmp->header >= INFO_HEADER && bmp->header <= LARGEST_HEADER);
    if (!known || bmp->length < FILE_HEADER + (size_t)bmp->header)
        return "a BMP with a header of an unknown kind";
    if (bmp->header == CORE_HEADER)
        read_core_header(bmp);
    else
        read_info_header(bmp);
    if (!bmp_gray_is_known(bmp) || bmp->width == 0 || bmp->height == 0 || bmp->width > INT32_MAX)
        return "a BMP of an unknown kind";
    bool masks_behind = bmp->header == INFO_HEADER && bmp->compression >= MASKS;
    size_t masks = !masks_behind ? 0 : bmp->compression == MASKS ? 12 : 16;
    bmp->palette_at = FILE_HEADER + (size_t)bmp->header + masks;
    bmp->pixels_at = bmp_gray_number_at(bmp->bytes + 10, 4);
    if (bmp->pixels_at < bmp->palette_at || bmp->pixels_at > bmp->length)
        return "a BMP whose pixels are not where its header says";
    return bmp->bits >= 16 && !read_masks(bmp) ? "a BMP with invalid masks" : NULL;
}

static size_t row_size(uint64_t width, unsigned bits) {
    return (size_t)((width * bits + 31) / 32 * 4);
}

/* ---- palettes ----------------------------------------------------------------------------- */

static enum picture_result bmp_gray_convert_palette(const struct bmp *bmp,
                                                    struct picture_output *output) {
    size_t entry = bmp->header == CORE_HEADER ? 3 : 4, most = (size_t)1 << bmp->bits;
    size_t count = bmp->colors == 0 || bmp->colors > most ? most : bmp->colors;
    size_t room = (bmp->pixels_at - bmp->palette_at) / entry;
    bool changed = false;
    if (count > room)
        count = room;
    if (count == 0)
        return picture_bad(output, "a BMP without its palette");
    output->bytes = malloc(bmp->length);
    if (output->bytes == NULL)
        return picture_bad(output, "out of memory");
    memcpy(output->bytes, bmp->bytes, bmp->length);
    output->length = bmp->length;
    for (unsigned char *at = output->bytes + bmp->palette_at; count > 0; count--, at += entry) {
        unsigned char luma = gray_luma(at[2], at[1], at[0]);
        changed |= at[0] != luma || at[1] != luma || at[2] != luma;
        memset(at, luma, 3);
    }
    if (changed)
        return PICTURE_DONE;
    free(output->bytes);
    memset(output, 0, sizeof *output);
    return PICTURE_UNCHANGED;
}

/* ---- pixels ------------------------------------------------------------------------------- */

static unsigned sample(const struct field *field, uint32_t pixel) {
    if (field->most == 0)
        return 0;
    uint64_t value = (pixel & field->mask) >> field->shift;
    return (unsigned)((value * 255 + field->most / 2) / field->most);
}

static unsigned char bmp_gray_luma_of(const struct bmp *bmp, uint32_t pixel) {
    return gray_luma(sample(&bmp->fields[RED], pixel), sample(&bmp->fields[GREEN], pixel),
                     sample(&bmp->fields[BLUE], pixel));
}

static bool is_opaque(const struct bmp *bmp) {
    uint32_t alpha = bmp->fields[ALPHA].mask;
    size_t row = row_size(bmp->width, bmp->bits), bytes = bmp->bits / 8;
    for (uint64_t y = 0; alpha != 0 && y < bmp->height; y++)
        for (uint64_t x = 0; x < bmp->width; x++) {
            const unsigned char *at = bmp->bytes + bmp->pixels_at + y * row + x * bytes;
            if ((bmp_gray_number_at(at, (unsigned)bytes) & alpha) != alpha)
                return false;
        }
    return true;
}

/* Writes the same luma to each of three fields. All other bits stay. */
static uint32_t spread(const struct bmp *bmp, uint32_t pixel) {
    uint32_t luma = bmp_gray_luma_of(bmp, pixel);
    for (int i = RED; i <= BLUE; i++) {
        const struct field *field = &bmp->fields[i];
        uint64_t value = ((uint64_t)luma * field->most + 127) / 255;
        pixel = (pixel & ~field->mask) | ((uint32_t)value << field->shift & field->mask);
    }
    return pixel;
}

/* Makes each pixel gray in its place. With 16 bits, where fields have several widths, the result is
 * only nearly neutral. */
static enum picture_result convert_in_place(const struct bmp *bmp, struct picture_output *output) {
    size_t row = row_size(bmp->width, bmp->bits), bytes = bmp->bits / 8;
    output->bytes = malloc(bmp->length);
    if (output->bytes == NULL)
        return picture_bad(output, "out of memory");
    memcpy(output->bytes, bmp->bytes, bmp->length);
    output->length = bmp->length;
    for (uint64_t y = 0; y < bmp->height; y++)
        for (uint64_t x = 0; x < bmp->width; x++) {
            unsigned char *at = output->bytes + bmp->pixels_at + y * row + x * bytes;
            bmp_gray_put_number(at, spread(bmp, bmp_gray_number_at(at, (unsigned)bytes)),
                                (unsigned)bytes);
        }
    return PICTURE_DONE;
}

/* Writes a header of Windows 3 with the resolution of the original, and a palette of all grays. */
static void write_headers(const struct bmp *bmp, unsigned char *out, size_t length) {
    enum { RESOLUTION = FILE_HEADER + 24 };
    memset(out, 0, OUT_PIXELS);
    memcpy(out, "BM", 2);
    bmp_gray_put_number(out + 2, (uint32_t)length, 4);
    bmp_gray_put_number(out + 10, OUT_PIXELS, 4);
    unsigned char *info = out + FILE_HEADER;
    bmp_gray_put_number(info, INFO_HEADER, 4);
    bmp_gray_put_number(info + 4, (uint32_t)bmp->width, 4);
    bmp_gray_put_number(info + 8,
                        bmp->from_above ? 0 - (uint32_t)bmp->height : (uint32_t)bmp->height, 4);
    bmp_gray_put_number(info + 12, 1, 2);
    bmp_gray_put_number(info + 14, 8, 2);
    bmp_gray_put_number(info + 20, (uint32_t)(length - OUT_PIXELS), 4);
    if (bmp->header >= INFO_HEADER)
        memcpy(out + RESOLUTION, bmp->bytes + RESOLUTION, 8);
    bmp_gray_put_number(info + 32, GRAYS, 4);
    for (unsigned i = 0; i < GRAYS; i++)
        memset(out + FILE_HEADER + INFO_HEADER + 4 * (size_t)i, (int)i, 3);
}

static enum picture_result convert_to_bytes(const struct bmp *bmp, struct picture_output *output) {
    size_t row = row_size(bmp->width, bmp->bits), bytes = bmp->bits / 8;
    size_t out_row = row_size(bmp->width, 8);
    output->length = OUT_PIXELS + out_row * bmp->height;
    output->bytes = calloc(1, output->length);
    if (output->bytes == NULL)
        return picture_bad(output, "out of memory");
    write_headers(bmp, output->bytes, output->length);
    for (uint64_t y = 0; y < bmp->height; y++) {
        const unsigned char *from = bmp->bytes + bmp->pixels_at + y * row;
        unsigned char *to = output->bytes + OUT_PIXELS + y * out_row;
        for (uint64_t x = 0; x < bmp->width; x++, from += bytes)
            *to++ = bmp_gray_luma_of(bmp, bmp_gray_number_at(from, (unsigned)bytes));
    }
    return PICTURE_DONE;
}

enum picture_result bmp_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output) {
    struct bmp bmp = {.bytes = bytes, .length = length};
    memset(output, 0, sizeof *output);
    const char *why = read_headers(&bmp);
    if (why != NULL)
        return picture_bad(output, why);
    if (bmp.height > options->max_pixels / bmp.width)
        return picture_bad(output, "too many pixels");
    if (bmp.bits <= 8)
        return bmp_gray_convert_palette(&bmp, output);
    if ((length - bmp.pixels_at) / row_size(bmp.width, bmp.bits) < bmp.height)
        return picture_bad(output, "the image ends too early");
    bool larger = OUT_PIXELS + row_size(bmp.width, 8) * bmp.height > length;
    if (!is_opaque(&bmp) || (larger && !options->larger))
        return convert_in_place(&bmp, output);
    return convert_to_bytes(&bmp, output);
}
