/* gzip (RFC 1952) by zlib. */
#include "gzip/codec.h"

#include <stdlib.h>

#include <zlib.h>

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

const struct codec codec_gzip = {{"gzip", 4}, gzip_open, gzip_run, gzip_renew, gzip_close};
