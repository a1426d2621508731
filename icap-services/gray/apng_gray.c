#include "gray/apng_gray.h"

#include "gray/png_chunks.h"
#include "gray/png_gray.h"

#include <stdlib.h>

#include <png.h>
#include <zlib.h>

enum {
    SIGNATURE = 8,
    HEAD = 8, /* of a chunk: length and name */
    CHECKSUM = 4,
    SEQUENCE = 4,
    HEADER = 13,  /* IHDR */
    CONTROL = 26, /* fcTL */
    FRAME_WORK = 1024,
};

struct chunk {
    const unsigned char *name, *data;
    uint32_t length;
};

/* A buffer of bytes that grows. */
struct buffer {
    unsigned char *bytes;
    size_t length, room;
    bool failed; /* there was no memory */
};

struct apng {
    const struct picture_options *options;
    struct chunk header, gamma, transparency; /* that of the original; a NULL name: none */
    struct buffer frame;                      /* the frame being collected, as a PNG of its own */
    struct buffer out;
    uint32_t sequence;  /* number of the next fcTL or fdAT */
    bool first_is_over; /* what comes is in fdAT */
    bool has_header;    /* the gray one is in `out` */
};

static bool apng_gray_is_called(const struct chunk *chunk, const char *name) {
    return memcmp(chunk->name, name, 4) == 0;
}

static bool apng_gray_is_one_of(const struct chunk *chunk, const char *const *names) {
    for (; *names != NULL; names++)
        if (apng_gray_is_called(chunk, *names))
            return true;
    return false;
}

/* ---- bytes -------------------------------------------------------------------------------- */

static void apng_gray_put(struct buffer *buffer, const void *bytes, size_t length) {
    if (!buffer->failed && buffer->room - buffer->length < length) {
        size_t room = 2 * (buffer->room + length);
        unsigned char *larger = realloc(buffer->bytes, room);
        buffer->failed = larger == NULL;
        if (larger != NULL) {
            buffer->bytes = larger;
            buffer->room = room;
        }
    }
    if (buffer->failed || length == 0)
        return;
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
}

static void apng_gray_put_number(struct buffer *buffer, uint32_t number) {
    unsigned char bytes[4];
    png_save_uint_32(bytes, number);
    apng_gray_put(buffer, bytes, sizeof bytes);
}

static void put_signature(struct buffer *buffer) {
    apng_gray_put(buffer, "\x89PNG\r\n\x1a\n", SIGNATURE);
}

/* Writes a chunk. `before` stands in front of its data, and is `before_length` bytes long. */
static void put_chunk(struct buffer *buffer, const void *name, const void *before,
                      size_t before_length, const void *data, size_t length) {
    apng_gray_put_number(buffer, (uint32_t)(before_length + length));
    size_t start = buffer->length;
    apng_gray_put(buffer, name, 4);
    apng_gray_put(buffer, before, before_length);
    apng_gray_put(buffer, data, length);
    if (!buffer->failed)
        apng_gray_put_number(
            buffer, (uint32_t)crc32(0, buffer->bytes + start, (uInt)(buffer->length - start)));
}

/* Takes the next chunk if it is there as a whole. False behind the last one. */
static bool next_chunk(const unsigned char **at, const unsigned char *end, struct chunk *chunk) {
    if (end - *at < HEAD + CHECKSUM)
        return false;
    *chunk = (struct chunk){*at + 4, *at + HEAD, png_get_uint_32(*at)};
    if ((uint64_t)(end - *at) < (uint64_t)chunk->length + HEAD + CHECKSUM)
        return false;
    *at += HEAD + chunk->length + CHECKSUM;
    return true;
}

/* ---- frames ------------------------------------------------------------------------------- */

/* Begins a PNG with the size of the frame, and with what the original says of all pixels. */
static void begin_frame(struct apng *apng, uint32_t width, uint32_t height) {
    unsigned char header[HEADER];
    memcpy(header, apng->header.data, HEADER);
    png_save_uint_32(header, width);
    png_save_uint_32(header + 4, height);
    apng->frame.length = 0;
    put_signature(&apng->frame);
    put_chunk(&apng->frame, "IHDR", NULL, 0, header, HEADER);
    const struct chunk *more[] = {&apng->gamma, &apng->transparency};
    for (int i = 0; i < 2; i++)
        if (more[i]->name != NULL)
            put_chunk(&apng->frame, more[i]->name, NULL, 0, more[i]->data, more[i]->length);
}

/* The first frame tells how gray pixels are written. All other frames are written in the same
 * way. */
static void take_header(struct apng *apng, const struct chunk *made) {
    unsigned char header[HEADER];
    memcpy(header, made->data, HEADER);
    memcpy(header, apng->header.data, 8); /* the size of the whole */
    memcpy(apng->out.bytes + SIGNATURE + HEAD, header, HEADER);
    png_save_uint_32(apng->out.bytes + SIGNATURE + HEAD + HEADER,
                     (png_uint_32)crc32(0, apng->out.bytes + SIGNATURE + 4, 4 + HEADER));
    apng->has_header = true;
}

static void put_pixels(struct apng *apng, const struct picture_output *gray) {
    const unsigned char *at = gray->bytes + SIGNATURE, *end = gray->bytes + gray->length;
    unsigned char number[SEQUENCE];
    for (struct chunk chunk; next_chunk(&at, end, &chunk);) {
        if (apng_gray_is_called(&chunk, "IHDR") && !apng->has_header && !apng->out.failed)
            take_header(apng, &chunk);
        if (!apng_gray_is_called(&chunk, "IDAT"))
            continue;
        if (apng->first_is_over) {
            png_save_uint_32(number, apng->sequence++);
            put_chunk(&apng->out, "fdAT", number, SEQUENCE, chunk.data, chunk.length);
        } else
            put_chunk(&apng->out, "IDAT", NULL, 0, chunk.data, chunk.length);
    }
}

/* NULL, or what is wrong. */
static const char *end_frame(struct apng *apng) {
    const struct picture_options options = {.max_pixels = apng->options->max_pixels,
                                            .larger = true};
    struct picture_output gray;
    if (apng->frame.length == 0)
        return NULL;
    put_chunk(&apng->frame, "IEND", NULL, 0, NULL, 0);
    if (apng->frame.failed)
        return "out of memory";
    enum picture_result result = png_gray(apng->frame.bytes, apng->frame.length, &options, &gray);
    apng->frame.length = 0;
    if (result != PICTURE_DONE)
        return "one of its frames is not a whole image";
    put_pixels(apng, &gray);
    free(gray.bytes);
    apng->first_is_over = true;
    return NULL;
}

/* The control chunk gets a new number, since frames may be cut into other pieces than before. */
static void apng_gray_put_control(struct apng *apng, const struct chunk *control) {
    unsigned char number[SEQUENCE];
    png_save_uint_32(number, apng->sequence++);
    put_chunk(&apng->out, "fcTL", number, SEQUENCE, control->data + SEQUENCE, CONTROL - SEQUENCE);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static const char *take_control(struct apng *apng, const struct chunk *chunk) {
    const char *why = end_frame(apng);
    if (why != NULL || chunk->length != CONTROL)
        return why != NULL ? why : "an fcTL chunk has the wrong length";
    apng_gray_put_control(apng, chunk);
    if (apng->first_is_over)
        begin_frame(apng, png_get_uint_32(chunk->data + 4), png_get_uint_32(chunk->data + 8));
    return NULL;
}

static const char *take_pixels(struct apng *apng, const struct chunk *chunk) {
    if (apng->first_is_over)
        return "an IDAT chunk stands behind the frames";
    if (apng->frame.length == 0)
        begin_frame(apng, png_get_uint_32(apng->header.data),
                    png_get_uint_32(apng->header.data + 4));
    put_chunk(&apng->frame, "IDAT", NULL, 0, chunk->data, chunk->length);
    return NULL;
}

static const char *take_frame_pixels(struct apng *apng, const struct chunk *chunk) {
    if (chunk->length < SEQUENCE || !apng->first_is_over || apng->frame.length == 0)
        return "an fdAT chunk belongs to no frame";
    put_chunk(&apng->frame, "IDAT", NULL, 0, chunk->data + SEQUENCE, chunk->length - SEQUENCE);
    return NULL;
}

static const char *take_header_chunk(struct apng *apng, const struct chunk *chunk) {
    if (chunk->length != HEADER || apng->header.name != NULL)
        return "an IHDR chunk has the wrong length, or there are two";
    apng->header = *chunk;
    put_chunk(&apng->out, "IHDR", NULL, 0, chunk->data, chunk->length);
    return NULL;
}

static const char *take_chunk(struct apng *apng, const struct chunk *chunk) {
    static const char *const kept[] = {"acTL", "gAMA", "sRGB", "pHYs", "eXIf",
                                       "tEXt", "zTXt", "iTXt", "tIME", NULL};
    if (apng->header.name == NULL || apng_gray_is_called(chunk, "IHDR"))
        return apng_gray_is_called(chunk, "IHDR") ? take_header_chunk(apng, chunk)
                                                  : "it does not begin with an IHDR chunk";
    if (apng_gray_is_called(chunk, "fcTL"))
        return take_control(apng, chunk);
    if (apng_gray_is_called(chunk, "IDAT"))
        return take_pixels(apng, chunk);
    if (apng_gray_is_called(chunk, "fdAT"))
        return take_frame_pixels(apng, chunk);
    if (apng_gray_is_called(chunk, "gAMA") && apng->gamma.name == NULL)
        apng->gamma = *chunk;
    if (apng_gray_is_called(chunk, "tRNS") && apng->transparency.name == NULL)
        apng->transparency = *chunk;
    if (apng_gray_is_one_of(chunk, kept))
        put_chunk(&apng->out, chunk->name, NULL, 0, chunk->data, chunk->length);
    return NULL;
}

/* Sums up the sizes that the frames state. */
static bool is_too_large(const unsigned char *bytes, size_t length, uint64_t max_pixels) {
    const unsigned char *at = bytes + SIGNATURE, *end = bytes + length;
    uint64_t pixels = 0;
    for (struct chunk chunk; pixels <= max_pixels && next_chunk(&at, end, &chunk);) {
        if (apng_gray_is_called(&chunk, "IHDR") && chunk.length == HEADER)
            pixels += (uint64_t)png_get_uint_32(chunk.data) * png_get_uint_32(chunk.data + 4);
        if (apng_gray_is_called(&chunk, "fcTL") && chunk.length == CONTROL)
            pixels += (uint64_t)png_get_uint_32(chunk.data + 4) * png_get_uint_32(chunk.data + 8) +
                      FRAME_WORK;
    }
    return pixels > max_pixels;
}

static const char *take_all(struct apng *apng, const unsigned char *bytes, size_t length) {
    const unsigned char *at = bytes + SIGNATURE, *end = bytes + length;
    const char *why = NULL;
    put_signature(&apng->out);
    for (struct chunk chunk; why == NULL && next_chunk(&at, end, &chunk);) {
        if (apng_gray_is_called(&chunk, "IEND"))
            break;
        why = take_chunk(apng, &chunk);
    }
    if (why == NULL)
        why = end_frame(apng);
    put_chunk(&apng->out, "IEND", NULL, 0, NULL, 0);
    return why != NULL ? why : apng->out.failed ? "out of memory" : NULL;
}

enum picture_result apng_gray(const unsigned char *bytes, size_t length,
                              const struct picture_options *options,
                              struct picture_output *output) {
    struct apng apng = {.options = options};
    memset(output, 0, sizeof *output);
    if (is_too_large(bytes, length, options->max_pixels))
        return picture_bad(output, "too many pixels in all frames together");
    const char *why = take_all(&apng, bytes, length);
    free(apng.frame.bytes);
    output->bytes = apng.out.bytes;
    output->length = apng.out.length;
    if (why == NULL && !apng.has_header)
        why = "no pixels";
    if (why != NULL)
        return picture_bad(output, why);
    if (options->strip)
        output->length = png_strip(output->bytes, output->length);
    return picture_done(options, length, output);
}
