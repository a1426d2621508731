/* zstd (RFC 8878) by libzstd. */
#include "gzip/codec.h"

#include <zstd.h>

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

const struct codec codec_zstd = {{"zstd", 4}, zstd_open, zstd_run, zstd_renew, zstd_close};
