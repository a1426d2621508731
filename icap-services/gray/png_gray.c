#include "gray/png_gray.h"

#include "gray/apng_gray.h"
#include "gray/png_chunks.h"
#include "gray/scaler.h"
#include "gray/tiff.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

enum { CHUNK_BYTES_MAX = 1 << 20, BYTE_MAX = 255, WIDE_MAX = 65535 };

struct png_work {
    const unsigned char *bytes;
    size_t length, at;
    const struct picture_options *options;
    struct picture_size wanted;
    struct picture_output *output;
    size_t room; /* of output->bytes */
    png_structp in, out;
    png_infop in_info, out_info;
    unsigned char *pixels, **rows;
    unsigned channels; /* of the pixels, once they are gray */
    struct scaler *scaler;
    struct gamma_luma *luma; /* NULL: the file tells no gamma */
    jmp_buf on_error;
};

static _Noreturn void png_gray_fail(struct png_work *work, const char *why) {
    picture_bad(work->output, why);
    longjmp(work->on_error, 1);
}

static _Noreturn void png_gray_on_error(png_structp png, png_const_charp text) {
    png_gray_fail(png_get_error_ptr(png), text);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void png_gray_on_read(png_structp png, png_bytep out, size_t length) {
    struct png_work *work = png_get_io_ptr(png);
    if (work->length - work->at < length)
        png_gray_fail(work, "the image ends too early");
    memcpy(out, work->bytes + work->at, length);
    work->at += length;
}

static void on_write(png_structp png, png_bytep bytes, size_t length) {
    struct png_work *work = png_get_io_ptr(png);
    struct picture_output *output = work->output;
    if (work->room - output->length < length) {
        size_t room = 2 * (work->room + length);
        unsigned char *larger = realloc(output->bytes, room);
        if (larger == NULL)
            png_gray_fail(work, "out of memory");
        output->bytes = larger;
        work->room = room;
    }
    memcpy(output->bytes + output->length, bytes, length);
    output->length += length;
}

static void on_flush(png_structp png) {
    (void)png;
}

/* ---- pixels ------------------------------------------------------------------------------- */

/* If the file tells no gamma, the formula is used as it stands. */
static unsigned png_gray_luma_of(const struct gamma_luma *luma, unsigned red, unsigned green,
                                 unsigned blue) {
    return luma == NULL ? (299 * red + 587 * green + 114 * blue + 500) / 1000
                        : gamma_luma_of(luma, red, green, blue);
}

/* A sample. One of 16 bits has the higher byte first. */
static unsigned sample_at(const unsigned char *at, bool wide) {
    return wide ? (unsigned)(at[0] << 8 | at[1]) : at[0];
}

static void make_row_gray(const struct gamma_luma *table, unsigned char *row, unsigned width,
                          unsigned channels, bool wide) {
    unsigned bytes = channels << wide, out_bytes = (channels - 2) << wide;
    for (unsigned x = 0; x < width; x++) {
        const unsigned char *from = row + (size_t)x * bytes;
        unsigned char *to = row + (size_t)x * out_bytes, alpha[2] = {0, 0};
        unsigned luma =
            png_gray_luma_of(table, sample_at(from, wide), sample_at(from + (1 << wide), wide),
                             sample_at(from + (2 << wide), wide));
        if (channels == 4)
            memcpy(alpha, from + (3 << wide), 1u << wide);
        if (wide)
            *to++ = (unsigned char)(luma >> 8);
        *to++ = (unsigned char)luma;
        if (channels == 4)
            memcpy(to, alpha, 1u << wide);
    }
}

static void png_gray_make_gray(struct png_work *work, uint32_t gamma, unsigned width,
                               unsigned height) {
    bool wide = png_get_bit_depth(work->in, work->in_info) == 16;
    if (work->channels < 3)
        return;
    if (gamma != 0 && (work->luma = gamma_luma_create(gamma, wide ? WIDE_MAX : BYTE_MAX)) == NULL)
        png_gray_fail(work, "out of memory");
    for (unsigned y = 0; y < height; y++)
        make_row_gray(work->luma, work->rows[y], width, work->channels, wide);
    work->channels -= 2;
}

static bool png_gray_is_scaled(const struct png_work *work, const struct png_info *info) {
    return work->wanted.width != info->width || work->wanted.height != info->height;
}

/* The EXIF data stays before or behind the pixels, as it was: data before the pixels tells how they
 * are shown. */
static void png_gray_copy_exif(struct png_work *work) {
    png_uint_32 length;
    png_bytep bytes;
    char room[EXIF_MINIMAL];
    if (!png_get_eXIf_1(work->in, work->in_info, &length, &bytes))
        return;
    struct slice exif = slice_make((const char *)bytes, length);
    if (work->options->strip)
        exif = exif_stripped(exif, room);
    if (exif.length > 0)
        png_set_eXIf_1(work->out, work->out_info, (png_uint_32)exif.length, (png_bytep)exif.base);
}

/* Metadata that stays is copied as it stands, and metadata that goes is not read. Texts and
 * profiles may be compressed: a kilobyte may hold a megabyte. */
static void choose_chunks(struct png_work *work) {
    static const png_byte texts[] = "tEXt\0zTXt\0iTXt", others[] = "iCCP\0sPLT\0pCAL\0sCAL\0hIST";
    enum { NAME = 5 };
    png_set_keep_unknown_chunks(
        work->in, work->options->strip ? PNG_HANDLE_CHUNK_NEVER : PNG_HANDLE_CHUNK_ALWAYS, texts,
        sizeof texts / NAME);
    png_set_keep_unknown_chunks(work->in, PNG_HANDLE_CHUNK_NEVER, others, sizeof others / NAME);
}

static void read_pixels(struct png_work *work, const struct png_info *info) {
    png_structp in = work->in;
    png_set_user_limits(in, PICTURE_SIDE_MAX, PICTURE_SIDE_MAX);
    png_set_chunk_malloc_max(in, CHUNK_BYTES_MAX);
    choose_chunks(work);
    png_set_read_fn(in, work, png_gray_on_read);
    png_read_info(in, work->in_info);
    png_gray_copy_exif(work);
    unsigned width = png_get_image_width(in, work->in_info);
    unsigned height = png_get_image_height(in, work->in_info);
    png_set_expand(in); /* palettes, few bits, and a transparent colour */
    if (png_gray_is_scaled(work, info))
        png_set_scale_16(in);
    png_set_interlace_handling(in);
    png_read_update_info(in, work->in_info);
    size_t row_bytes = png_get_rowbytes(in, work->in_info);
    work->pixels = malloc(row_bytes * height);
    work->rows = malloc(sizeof *work->rows * height);
    if (work->pixels == NULL || work->rows == NULL)
        png_gray_fail(work, "out of memory");
    for (unsigned y = 0; y < height; y++)
        work->rows[y] = work->pixels + y * row_bytes;
    png_read_image(in, work->rows);
    png_read_end(in, work->in_info);
    work->channels = png_get_channels(in, work->in_info);
    png_gray_make_gray(work, info->gamma, width, height);
}

/* Each text stays where it stood, before or behind the pixels. */
static void copy_texts(struct png_work *work) {
    png_unknown_chunkp texts;
    int count = png_get_unknown_chunks(work->in, work->in_info, &texts);
    png_set_unknown_chunks(work->out, work->out_info, texts, count);
    for (int i = 0; i < count; i++)
        png_set_unknown_chunk_location(work->out, work->out_info, i, texts[i].location);
}

/* Metadata that does not speak of colours stays. */
static void copy_metadata(struct png_work *work) {
    png_uint_32 across, down;
    png_fixed_point gamma;
    int unit, intent;
    if (png_get_gAMA_fixed(work->in, work->in_info, &gamma))
        png_set_gAMA_fixed(work->out, work->out_info, gamma);
    if (png_get_sRGB(work->in, work->in_info, &intent))
        png_set_sRGB(work->out, work->out_info, intent);
    if (png_get_pHYs(work->in, work->in_info, &across, &down, &unit))
        png_set_pHYs(work->out, work->out_info, across, down, unit);
    copy_texts(work);
}

/* Scales the rows to the size that is wanted. Returns the new height. */
static unsigned scale_rows(struct png_work *work, unsigned channels, unsigned width,
                           unsigned height) {
    struct scaler_shape shape = {.channels = channels,
                                 .opacity = channels == 2,
                                 .in_width = width,
                                 .in_height = height,
                                 .out_width = work->wanted.width,
                                 .out_height = work->wanted.height};
    work->scaler = scaler_create(&shape);
    if (work->scaler == NULL)
        png_gray_fail(work, "out of memory");
    unsigned made = 0;
    for (unsigned y = 0; y < height; y++)
        if (scaler_push(work->scaler, work->rows[y]))
            memcpy(work->rows[made++], scaler_row(work->scaler), shape.out_width * channels);
    return made;
}

static void write_pixels(struct png_work *work, const struct png_info *info) {
    unsigned width = png_get_image_width(work->in, work->in_info);
    unsigned height = png_get_image_height(work->in, work->in_info);
    unsigned channels = work->channels;
    int depth = png_get_bit_depth(work->in, work->in_info), interlaced = info->is_interlaced;
    if (png_gray_is_scaled(work, info)) {
        height = scale_rows(work, channels, width, height);
        width = work->wanted.width;
        interlaced = PNG_INTERLACE_NONE;
    }
    png_set_write_fn(work->out, work, on_write, on_flush);
    png_set_IHDR(work->out, work->out_info, width, height, depth,
                 channels == 2 ? PNG_COLOR_TYPE_GRAY_ALPHA : PNG_COLOR_TYPE_GRAY, interlaced,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    copy_metadata(work);
    png_write_info(work->out, work->out_info);
    png_write_image(work->out, work->rows);
    png_gray_copy_exif(work);
    png_write_end(work->out, work->out_info);
}

static enum picture_result convert_pixels(struct png_work *work, const struct png_info *info) {
    volatile enum picture_result result = PICTURE_BAD;
    if (setjmp(work->on_error) == 0) {
        work->in =
            png_create_read_struct(PNG_LIBPNG_VER_STRING, work, png_gray_on_error, on_warning);
        work->out =
            png_create_write_struct(PNG_LIBPNG_VER_STRING, work, png_gray_on_error, on_warning);
        if (work->in == NULL || work->out == NULL)
            png_gray_fail(work, "out of memory");
        work->in_info = png_create_info_struct(work->in);
        work->out_info = png_create_info_struct(work->out);
        if (work->in_info == NULL || work->out_info == NULL)
            png_gray_fail(work, "out of memory");
        read_pixels(work, info);
        write_pixels(work, info);
        result = picture_done(work->options, work->length, work->output);
    }
    png_destroy_read_struct(&work->in, &work->in_info, NULL);
    png_destroy_write_struct(&work->out, &work->out_info);
    scaler_free(&work->scaler);
    gamma_luma_free(&work->luma);
    free(work->rows);
    free(work->pixels);
    return result;
}

/* ---- palettes ----------------------------------------------------------------------------- */

static void write_checksum(unsigned char *to, uLong sum) {
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(sum >> (24 - 8 * i));
}

/* Copies the original, for changes in place. False: there is no memory, and the output says so. */
static bool copy_original(struct png_work *work) {
    struct picture_output *output = work->output;
    output->bytes = malloc(work->length);
    if (output->bytes == NULL) {
        picture_bad(output, "out of memory");
        return false;
    }
    memcpy(output->bytes, work->bytes, work->length);
    output->length = work->length;
    return true;
}

/* Makes a copy with another palette, and the checksum that belongs to it. */
static enum picture_result png_gray_convert_palette(struct png_work *work,
                                                    const struct png_info *info) {
    if (!info->is_whole)
        return picture_bad(work->output, "the image ends too early");
    if (!copy_original(work))
        return PICTURE_BAD;
    unsigned char *bytes = work->output->bytes;
    unsigned char *entry = bytes + info->palette_at;
    if (info->gamma != 0 && (work->luma = gamma_luma_create(info->gamma, BYTE_MAX)) == NULL)
        return picture_bad(work->output, "out of memory");
    for (uint32_t i = 0; i + 2 < info->palette_length; i += 3, entry += 3)
        memset(entry, (int)png_gray_luma_of(work->luma, entry[0], entry[1], entry[2]), 3);
    gamma_luma_free(&work->luma);
    const unsigned char *name = bytes + info->palette_at - 4;
    write_checksum(bytes + info->palette_at + info->palette_length,
                   crc32(0, name, info->palette_length + 4));
    if (work->options->strip)
        work->output->length = png_strip(bytes, work->length);
    return PICTURE_DONE;
}

/* A picture that stays as it is may still lose its metadata. */
static enum picture_result png_gray_strip(struct png_work *work) {
    struct picture_output *output = work->output;
    if (!copy_original(work))
        return PICTURE_BAD;
    output->length = png_strip(output->bytes, work->length);
    if (output->length < work->length)
        return PICTURE_DONE;
    free(output->bytes);
    memset(output, 0, sizeof *output);
    return PICTURE_UNCHANGED;
}

enum picture_result png_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output) {
    struct png_info info;
    struct png_work *work = calloc(1, sizeof *work);
    memset(output, 0, sizeof *output);
    if (work == NULL)
        return picture_bad(output, "out of memory");
    work->bytes = bytes;
    work->length = length;
    work->options = options;
    work->output = output;
    enum picture_result result;
    bool known = png_info_read(&info, slice_make((const char *)bytes, length));
    struct picture_size size = {info.width, info.height};
    work->wanted = picture_wanted_size(options, size, info.is_turned);
    bool smaller = png_gray_is_scaled(work, &info);
    if (!known)
        result = picture_bad(output, "not a whole PNG");
    else if (info.pixels > options->max_pixels)
        result = picture_bad(output, "too many pixels");
    else if (info.is_gray && (info.is_animated || !smaller))
        result = PICTURE_UNCHANGED;
    else if (info.is_animated && info.palette_length == 0)
        result = info.is_whole ? apng_gray(bytes, length, options, output)
                               : picture_bad(output, "the image ends too early");
    else if (info.palette_length > 0 && (info.is_animated || !smaller))
        result = png_gray_convert_palette(work, &info);
    else
        result = convert_pixels(work, &info);
    if (result == PICTURE_UNCHANGED && options->strip && info.is_whole)
        result = png_gray_strip(work);
    free(work);
    return result;
}

struct gamma_luma {
    double *light; /* of each sample */
    double *least; /* the least light that is rounded to the sample */
};

struct gamma_luma *gamma_luma_create(uint32_t gamma, unsigned most) {
    double exponent = 100000.0 / gamma;
    struct gamma_luma *luma = malloc(sizeof *luma + 2 * sizeof(double) * ((size_t)most + 1));
    if (luma == NULL)
        return NULL;
    luma->light = (double *)(luma + 1);
    luma->least = luma->light + most + 1;
    for (unsigned i = 0; i <= most; i++) {
        luma->light[i] = pow((double)i / most, exponent);
        luma->least[i] = i == 0 ? 0 : pow((i - 0.5) / most, exponent);
    }
    return luma;
}

unsigned gamma_luma_of(const struct gamma_luma *luma, unsigned red, unsigned green, unsigned blue) {
    const double *light = luma->light;
    double wanted = 0.299 * light[red] + 0.587 * light[green] + 0.114 * light[blue];
    unsigned low = red < green ? red : green, high = red < green ? green : red;
    low = blue < low ? blue : low;
    high = blue > high ? blue : high;
    while (low < high) {
        unsigned middle = high - (high - low) / 2;
        if (luma->least[middle] <= wanted)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void gamma_luma_free(struct gamma_luma **lumap) {
    free(*lumap);
    *lumap = NULL;
}
