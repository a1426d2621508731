/*
 * A codec hides one compression library behind a few functions, so that the encoder (encoder.h) is
 * the same for all of them.
 *
 *     const struct codec *codec = codec_of(CODING_BROTLI);
 *     void *state = codec->open(5, 70000);                 NULL: no memory
 *     struct codec_room room = {in, in_length, out, out_length};
 *     while (codec->run(state, &room, CODEC_FINISH) == CODEC_MORE)
 *         ... make room for output, then call it again with the same step
 *     codec->close(state);
 *
 * `run` moves `in` and `out` forward by what it used. It returns CODEC_READY when the step is done.
 * CODEC_RUN is done when all input is taken; CODEC_FLUSH when all input is also in the output;
 * CODEC_FINISH when the end of the stream is in the output too. CODEC_MORE means that the output is
 * full. A FLUSH or FINISH that has begun must be called again until it returns CODEC_READY.
 *
 * The window of brotli and zstd is at most 512 KB, so that a stream takes a few megabytes at most
 * and any client can decode it. A decoder must support a window of 8 MB (RFC 8878 §3.1.1.1.2), and
 * HTTP allows no larger one (RFC 9659).
 *
 * Threads: a state belongs to one thread.
 */
#ifndef RETORT_GZIP_CODEC_H
#define RETORT_GZIP_CODEC_H

#include "base/slice.h"

enum coding { CODING_GZIP, CODING_BROTLI, CODING_ZSTD, CODING_COUNT };

enum codec_step { CODEC_RUN, CODEC_FLUSH, CODEC_FINISH };
enum codec_result { CODEC_READY, CODEC_MORE, CODEC_FAILED };

/* Bits of the largest window, and the value of `length` for a body of unknown length. */
enum { CODEC_WINDOW = 19 };
#define CODEC_LENGTH_UNKNOWN UINT64_MAX

struct codec_room {
    const unsigned char *in;
    size_t in_length;
    unsigned char *out;
    size_t out_length;
};

struct codec {
    struct slice name; /* the content coding: RFC 9110 §8.4.1 */
    /* `length` is that of the body; a hint. */
    void *(*open)(int quality, uint64_t length);
    enum codec_result (*run)(void *state, struct codec_room *room, enum codec_step step);
    /* Makes a state that was used, for whatever body, as `open` makes it. False: it can't; it is to
     * be closed. NULL: no state can be used twice. */
    bool (*renew)(void *state, int quality, uint64_t length);
    void (*close)(void *state);
};

const struct codec *codec_of(enum coding coding);
/* CODING_COUNT when no coding has that name. */
enum coding coding_named(struct slice name);

#endif
