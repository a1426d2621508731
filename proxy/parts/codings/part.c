#include "part.h"

#include "adapt/coding.h"
#include "base/assert.h"
#include "libraries.h"

#include <brotli/decode.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* The part codings: undoes gzip, deflate, br and zstd, for services with `decode`. */

/* zlib, for gzip and deflate. */

enum { GZIP_FRAME = 15 + 16, ZLIB_FRAME = 15, NO_FRAME = -15 };

struct inflater {
    unsigned magic;
#define INFLATER_MAGIC 0x1f1a7e00u
    z_stream stream;
    bool open;
    bool several;     /* members may follow one another */
    unsigned members; /* that were complete */
    char front[2];    /* shows which frame deflate data has */
    unsigned front_length, front_taken;
};

static bool open_inflater(struct inflater *inflater, int frame) {
    inflater->open = inflateInit2(&inflater->stream, frame) == Z_OK;
    return inflater->open;
}

static void close_inflater(void *state) {
    struct inflater *inflater;
    CAST_OBJ(inflater, state, INFLATER_MAGIC);
    if (inflater->open)
        inflateEnd(&inflater->stream);
    FREE_OBJ(inflater);
}

static void *open_gzip(void) {
    struct inflater *inflater;
    ALLOC_OBJ(inflater, INFLATER_MAGIC);
    inflater->several = true;
    if (!open_inflater(inflater, GZIP_FRAME))
        close_inflater(inflater);
    return inflater;
}

/* One call of zlib. */
static int inflate_some(struct inflater *inflater, const char **in, size_t *in_length,
                        struct coding_room *room) {
    z_stream *stream = &inflater->stream;
    uInt most = 1 << 30;
    stream->next_in = (Bytef *)*in;
    stream->avail_in = *in_length < most ? (uInt)*in_length : most;
    stream->next_out = (Bytef *)room->out;
    stream->avail_out = room->out_length < most ? (uInt)room->out_length : most;
    int status = inflate(stream, Z_NO_FLUSH);
    *in_length -= (size_t)((const char *)stream->next_in - *in);
    *in = (const char *)stream->next_in;
    room->out_length -= (size_t)((char *)stream->next_out - room->out);
    room->out = (char *)stream->next_out;
    return status;
}

/* The magic number of a member is two bytes. */
static bool between_members(const struct inflater *inflater) {
    return inflater->members > 0 && inflater->stream.total_in < 2;
}

static enum coding_result run_inflater(struct inflater *inflater, const char **in,
                                       size_t *in_length, struct coding_room *room) {
    for (;;) {
        switch (inflate_some(inflater, in, in_length, room)) {
        case Z_STREAM_END: break;
        case Z_OK:
        case Z_BUF_ERROR: return between_members(inflater) ? CODING_WHOLE : CODING_MORE;
        default:
            return inflater->members > 0 && inflater->stream.total_in <= 2 ? CODING_OVER
                                                                           : CODING_BROKEN;
        }
        if (!inflater->several)
            return CODING_OVER;
        inflater->members++;
        inflateReset(&inflater->stream);
        if (*in_length == 0 || room->out_length == 0)
            return CODING_WHOLE;
    }
}

static enum coding_result run_gzip(void *state, struct coding_room *room) {
    struct inflater *inflater;
    CAST_OBJ(inflater, state, INFLATER_MAGIC);
    return run_inflater(inflater, &room->in, &room->in_length, room);
}

static void *open_deflate(void) {
    struct inflater *inflater;
    ALLOC_OBJ(inflater, INFLATER_MAGIC);
    return inflater;
}

/* RFC 1950 §2.2: the method is 8, the window not too large, and both bytes a multiple of 31. */
static int frame_of(const char front[2]) {
    unsigned method = (unsigned char)front[0], flags = (unsigned char)front[1];
    bool framed = (method & 15) == 8 && method >> 4 <= 7 && (method * 256 + flags) % 31 == 0;
    return framed ? ZLIB_FRAME : NO_FRAME;
}

static enum coding_result run_deflate(void *state, struct coding_room *room) {
    struct inflater *inflater;
    CAST_OBJ(inflater, state, INFLATER_MAGIC);
    while (inflater->front_length < 2 && room->in_length > 0) {
        inflater->front[inflater->front_length++] = *room->in++;
        room->in_length--;
    }
    if (inflater->front_length < 2)
        return CODING_MORE;
    if (!inflater->open && !open_inflater(inflater, frame_of(inflater->front)))
        return CODING_BROKEN;
    if (inflater->front_taken < 2) {
        const char *in = inflater->front + inflater->front_taken;
        size_t length = 2 - inflater->front_taken;
        enum coding_result result = run_inflater(inflater, &in, &length, room);
        inflater->front_taken = 2 - (unsigned)length;
        if (length > 0 || result != CODING_MORE || room->out_length == 0)
            return result;
    }
    return run_inflater(inflater, &room->in, &room->in_length, room);
}

/* brotli */

static void *open_brotli(void) {
    return BrotliDecoderCreateInstance(NULL, NULL, NULL);
}

static enum coding_result run_brotli(void *state, struct coding_room *room) {
    switch (BrotliDecoderDecompressStream(state, &room->in_length, (const uint8_t **)&room->in,
                                          &room->out_length, (uint8_t **)&room->out, NULL)) {
    case BROTLI_DECODER_RESULT_SUCCESS: return CODING_OVER;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:
    case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: return CODING_MORE;
    default: return CODING_BROKEN;
    }
}

static void close_brotli(void *state) {
    BrotliDecoderDestroyInstance(state);
}

/* zstd */

/* WINDOW: RFC 9659 §3, as a power of two. TELLING: bytes by which a frame's beginning is known. */
enum { ZSTD_WINDOW = 23, ZSTD_TELLING = 5 };

struct zstd_decoder {
    unsigned magic;
#define ZSTD_DECODER_MAGIC 0x25d0dec0u
    ZSTD_DStream *stream;
    size_t frames; /* that were complete */
    size_t taken;  /* bytes since the last one */
};

static void close_zstd(void *state) {
    struct zstd_decoder *decoder;
    CAST_OBJ(decoder, state, ZSTD_DECODER_MAGIC);
    ZSTD_freeDStream(decoder->stream);
    FREE_OBJ(decoder);
}

static void *open_zstd(void) {
    struct zstd_decoder *decoder;
    ALLOC_OBJ(decoder, ZSTD_DECODER_MAGIC);
    decoder->stream = ZSTD_createDStream();
    if (decoder->stream != NULL &&
        !ZSTD_isError(ZSTD_DCtx_setParameter(decoder->stream, ZSTD_d_windowLogMax, ZSTD_WINDOW)))
        return decoder;
    close_zstd(decoder);
    return NULL;
}

static enum coding_result run_zstd(void *state, struct coding_room *room) {
    struct zstd_decoder *decoder;
    CAST_OBJ(decoder, state, ZSTD_DECODER_MAGIC);
    size_t left = 1;
    do {
        ZSTD_inBuffer in = {room->in, room->in_length, 0};
        ZSTD_outBuffer out = {room->out, room->out_length, 0};
        if (decoder->frames > 0 && decoder->taken == 0 && in.size == 0)
            break;
        left = ZSTD_decompressStream(decoder->stream, &out, &in);
        if (ZSTD_isError(left))
            return decoder->frames > 0 && ZSTD_getErrorCode(left) == ZSTD_error_prefix_unknown
                       ? CODING_OVER
                       : CODING_BROKEN;
        room->in += in.pos;
        room->in_length -= in.pos;
        room->out += out.pos;
        room->out_length -= out.pos;
        decoder->frames += left == 0;
        decoder->taken = left == 0 ? 0 : decoder->taken + in.pos;
    } while (left == 0 && room->in_length > 0 && room->out_length > 0);
    bool between = decoder->frames > 0 && decoder->taken < ZSTD_TELLING;
    return between ? CODING_WHOLE : CODING_MORE;
}

static const struct coding codings[] = {
    {{"gzip", 4}, open_gzip, run_gzip, close_inflater},
    {{"x-gzip", 6}, open_gzip, run_gzip, close_inflater}, /* RFC 9110 §8.4.1.3 */
    {{"deflate", 7}, open_deflate, run_deflate, close_inflater},
    {{"br", 2}, open_brotli, run_brotli, close_brotli},
    {{"zstd", 4}, open_zstd, run_zstd, close_zstd},
    {.name = {NULL, 0}},
};

static const struct version_library *coding_libraries(void) {
    enum { VERSION_SIZE = 64 };
    static char brotli[VERSION_SIZE];
    static struct version_library libraries[4]; /* ends with a NULL name */
    uint32_t number = BrotliDecoderVersion();
    snprintf(brotli, sizeof brotli, "%u.%u.%u", number >> 24, number >> 12 & 0xfff, number & 0xfff);
    libraries[0] = (struct version_library){"zlib", zlibVersion()};
    libraries[1] = (struct version_library){"brotli", brotli};
    libraries[2] = (struct version_library){"zstd", ZSTD_versionString()};
    return libraries;
}

const struct part part_codings = {.codings = codings, .libraries = coding_libraries};
