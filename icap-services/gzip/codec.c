#include "gzip/codec.h"

#include "base/assert.h"

#include <brotli/encode.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

/* ---- gzip (RFC 1952) by zlib ------------------------------------------------------------------- */

enum {
    GZIP_WINDOW = 15 + 16, /* zlib: a window of 32 KB, in a gzip wrapper */
    GZIP_MEMORY = 8,
    STEP_MAX = 1 << 30, /* fits zlib's unsigned int */
};

static void *gzip_open(int quality, uint64_t length) {
    z_stream *stream = calloc(1, sizeof *stream);
    (void)length;
    if (stream != NULL && deflateInit2(stream, quality, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                                       Z_DEFAULT_STRATEGY) == Z_OK)
        return stream;
    free(stream);
    return NULL;
}

static unsigned limited(size_t length) {
    return (unsigned)(length < STEP_MAX ? length : STEP_MAX);
}

static enum codec_result gzip_run(void *state, struct codec_room *room, enum codec_step step) {
    static const int flushes[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH};
    z_stream *stream = state;
    stream->next_in = (unsigned char *)room->in;
    stream->avail_in = limited(room->in_length);
    stream->next_out = room->out;
    stream->avail_out = limited(room->out_length);
    int result = deflate(stream, flushes[step]);
    room->in_length -= (size_t)(stream->next_in - room->in);
    room->out_length -= (size_t)(stream->next_out - room->out);
    room->in = stream->next_in;
    room->out = stream->next_out;
    if (result == Z_STREAM_END)
        return CODEC_READY;
    if (result != Z_OK && result != Z_BUF_ERROR)
        return CODEC_FAILED;
    bool ready = step != CODEC_FINISH && room->in_length == 0 && room->out_length > 0;
    return ready ? CODEC_READY : CODEC_MORE;
}

/* The level may be another one: nothing has been compressed since the reset. */
static bool gzip_renew(void *state, int quality, uint64_t length) {
    z_stream *stream = state;
    (void)length;
    return deflateReset(stream) == Z_OK &&
           deflateParams(stream, quality, Z_DEFAULT_STRATEGY) == Z_OK;
}

static void gzip_close(void *state) {
    deflateEnd(state);
    free(state);
}

static const struct codec codec_gzip = {{"gzip", 4}, gzip_open, gzip_run, gzip_renew, gzip_close};

static uint32_t codec_brotli_window_bits(uint64_t length) {
    uint32_t bits = BROTLI_MIN_WINDOW_BITS;
    while (bits < CODEC_WINDOW && (UINT64_C(1) << bits) - 16 < length)
        bits++;
    return bits;
}

static void *brotli_open(int quality, uint64_t length) {
    BrotliEncoderState *encoder = BrotliEncoderCreateInstance(NULL, NULL, NULL);
    if (encoder == NULL)
        return NULL;
    BrotliEncoderSetParameter(encoder, BROTLI_PARAM_QUALITY, (uint32_t)quality);
    BrotliEncoderSetParameter(encoder, BROTLI_PARAM_LGWIN, codec_brotli_window_bits(length));
    if (length <= UINT32_MAX)
        BrotliEncoderSetParameter(encoder, BROTLI_PARAM_SIZE_HINT, (uint32_t)length);
    return encoder;
}

static enum codec_result brotli_run(void *state, struct codec_room *room, enum codec_step step) {
    static const BrotliEncoderOperation operations[] = {
        BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_FLUSH, BROTLI_OPERATION_FINISH};
    if (!BrotliEncoderCompressStream(state, operations[step], &room->in_length, &room->in,
                                     &room->out_length, &room->out, NULL))
        return CODEC_FAILED;
    if (step == CODEC_FINISH)
        return BrotliEncoderIsFinished(state) ? CODEC_READY : CODEC_MORE;
    bool ready = room->in_length == 0 && !BrotliEncoderHasMoreOutput(state);
    return ready ? CODEC_READY : CODEC_MORE;
}

static void brotli_close(void *state) {
    BrotliEncoderDestroyInstance(state);
}

static const struct codec codec_brotli = {{"br", 2}, brotli_open, brotli_run, NULL, brotli_close};

/* A window as large as the body needs, since the tables of the library grow with the window. */
static int codec_zstd_window_bits(uint64_t length) {
    int bits = 10;
    while (bits < CODEC_WINDOW && (UINT64_C(1) << bits) < length)
        bits++;
    return bits;
}

static bool zstd_renew(void *stream, int quality, uint64_t length) {
    return !ZSTD_isError(ZSTD_CCtx_reset(stream, ZSTD_reset_session_and_parameters)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, quality)) &&
           !ZSTD_isError(
               ZSTD_CCtx_setParameter(stream, ZSTD_c_windowLog, codec_zstd_window_bits(length)));
}

static void *zstd_open(int quality, uint64_t length) {
    ZSTD_CStream *stream = ZSTD_createCStream();
    if (stream == NULL || zstd_renew(stream, quality, length))
        return stream;
    ZSTD_freeCStream(stream);
    return NULL;
}

static enum codec_result zstd_run(void *state, struct codec_room *room, enum codec_step step) {
    static const ZSTD_EndDirective directives[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
    ZSTD_inBuffer in = {room->in, room->in_length, 0};
    ZSTD_outBuffer out = {room->out, room->out_length, 0};
    size_t left = ZSTD_compressStream2(state, &out, &in, directives[step]);
    if (ZSTD_isError(left))
        return CODEC_FAILED;
    room->in += in.pos;
    room->in_length -= in.pos;
    room->out += out.pos;
    room->out_length -= out.pos;
    bool ready = room->in_length == 0 && (step == CODEC_RUN || left == 0);
    return ready ? CODEC_READY : CODEC_MORE;
}

static void zstd_close(void *state) {
    ZSTD_freeCStream(state);
}

static const struct codec codec_zstd = {{"zstd", 4}, zstd_open, zstd_run, zstd_renew, zstd_close};

/* ---- all of them ------------------------------------------------------------------------------- */

static const struct codec *const codecs[CODING_COUNT] = {
    [CODING_GZIP] = &codec_gzip, [CODING_BROTLI] = &codec_brotli, [CODING_ZSTD] = &codec_zstd};

const struct codec *codec_of(enum coding coding) {
    ASSERT(coding < CODING_COUNT);
    return codecs[coding];
}

enum coding coding_named(struct slice name) {
    unsigned coding = 0;
    while (coding < CODING_COUNT && !slice_equal_nocase(name, codecs[coding]->name))
        coding++;
    return coding;
}
