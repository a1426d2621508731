/* brotli (RFC 7932) by libbrotlienc. */
#include "gzip/codec.h"

#include <brotli/encode.h>

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

const struct codec codec_brotli = {{"br", 2}, brotli_open, brotli_run, NULL, brotli_close};
