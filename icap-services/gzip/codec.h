/*
 * A codec: one library that compresses, behind one function, so that the encoder knows none of
 * them.
 *
 *     const struct codec *codec = codec_of(CODING_BROTLI);
 *     void *state = codec->open(5, 70000);                 NULL: no memory
 *     struct codec_room room = {in, in_length, out, out_length};
 *     while (codec->run(state, &room, CODEC_FINISH) == CODEC_MORE)
 *         ... make room for output, again with the same step
 *     codec->close(state);
 *
 * run moves in and out forward by what it used. It answers CODEC_READY when the step is done: all
 * input taken (RUN), and all of it in the output (FLUSH), with the end of the stream (FINISH).
 * CODEC_MORE: the output is full; once a FLUSH or FINISH was begun it must be called again until
 * READY.
 *
 * Windows are at most 512 KB (brotli, zstd), so that a stream takes a few megabytes at most and any
 * client can decode it (RFC 8878 §3.1.1.1.2 wants 8 MB of decoders, RFC 9659 no more for HTTP).
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
    /* `length` of the body, a hint. */
    void *(*open)(int quality, uint64_t length);
    enum codec_result (*run)(void *state, struct codec_room *room, enum codec_step step);
    void (*close)(void *state);
};

const struct codec *codec_of(enum coding coding);
/* CODING_COUNT when it is none of them. */
enum coding coding_named(struct slice name);

extern const struct codec codec_gzip, codec_brotli, codec_zstd;

#endif
