#include "service-test/decoded.h"

#include "base/assert.h"

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

enum { DECODED_MOST = 256 << 20, DECODED_STEP = 64 * 1024 };

struct decoded {
    char *bytes;
    size_t length, room;
};

static char *decoded_room(struct decoded *decoded) {
    if (decoded->room - decoded->length < DECODED_STEP)
        decoded->bytes = xrealloc(decoded->bytes, decoded->room = 2 * decoded->room + DECODED_STEP);
    return decoded->bytes + decoded->length;
}

static bool decode_gzip(struct decoded *decoded, struct slice body) {
    enum { GZIP_WINDOW = 16 + MAX_WBITS };
    z_stream stream = {.next_in = (Bytef *)body.base, .avail_in = (uInt)body.length};
    int status = Z_OK;
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return false;
    while (status == Z_OK && decoded->length < DECODED_MOST) {
        stream.next_out = (Bytef *)decoded_room(decoded);
        stream.avail_out = DECODED_STEP;
        status = inflate(&stream, Z_NO_FLUSH);
        decoded->length += DECODED_STEP - stream.avail_out;
    }
    bool whole = status == Z_STREAM_END && stream.avail_in == 0;
    inflateEnd(&stream);
    return whole;
}

static bool decode_brotli(struct decoded *decoded, struct slice body) {
    BrotliDecoderState *state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    BrotliDecoderResult status = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    const uint8_t *in = (const uint8_t *)body.base;
    size_t in_length = body.length;
    while (state != NULL && status == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT &&
           decoded->length < DECODED_MOST) {
        uint8_t *out = (uint8_t *)decoded_room(decoded);
        size_t room = DECODED_STEP;
        status = BrotliDecoderDecompressStream(state, &in_length, &in, &room, &out, NULL);
        decoded->length += DECODED_STEP - room;
    }
    if (state != NULL)
        BrotliDecoderDestroyInstance(state);
    return status == BROTLI_DECODER_RESULT_SUCCESS && in_length == 0;
}

static bool decode_zstd(struct decoded *decoded, struct slice body) {
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {body.base, body.length, 0};
    size_t status = 1;
    bool full = true;
    while (stream != NULL && status != 0 && !ZSTD_isError(status) && (in.pos < in.size || full) &&
           decoded->length < DECODED_MOST) {
        ZSTD_outBuffer out = {decoded_room(decoded), DECODED_STEP, 0};
        status = ZSTD_decompressStream(stream, &out, &in);
        full = out.pos == out.size;
        decoded->length += out.pos;
    }
    ZSTD_freeDStream(stream);
    return status == 0 && in.pos == in.size;
}

char *decoded_body(struct slice coding, struct slice body, size_t *length) {
    struct decoded decoded = {NULL, 0, 0};
    decoded_room(&decoded);
    bool good = slice_equal_nocase(coding, SLICE("gzip"))   ? decode_gzip(&decoded, body)
                : slice_equal_nocase(coding, SLICE("br"))   ? decode_brotli(&decoded, body)
                : slice_equal_nocase(coding, SLICE("zstd")) ? decode_zstd(&decoded, body)
                                                            : false;
    *length = decoded.length;
    if (!good) {
        free(decoded.bytes);
        return NULL;
    }
    return decoded.bytes;
}
