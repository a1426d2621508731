/*
 * A compressed stream: bytes in, compressed bytes out, with a bounded buffer between.
 *
 *     struct encoder *encoder = encoder_create(CODING_GZIP, 6, length);   NULL: no memory
 *     size_t took = encoder_push(encoder, bytes);            may take fewer: pull first
 *     encoder_flush(encoder);                                all taken so far is to come out
 *     encoder_finish(encoder);                               no more input
 *     size_t got = encoder_pull(encoder, out, capacity);
 *     if (encoder_failed(encoder)) ...                       the library has no memory
 *     if (encoder_done(encoder)) ...                         finished and pulled empty
 *     encoder_free(&encoder);
 *
 * A flush costs some bytes of compression, and is worth it where a reader waits for what is inside:
 * encoder_held says how much was taken since the last one.
 *
 * Threads: belongs to one thread.
 */
#ifndef RETORT_GZIP_ENCODER_H
#define RETORT_GZIP_ENCODER_H

#include "gzip/codec.h"

struct encoder;

/* `length` of the body, or CODEC_LENGTH_UNKNOWN: a hint. */
struct encoder *encoder_create(enum coding coding, int quality, uint64_t length);
void encoder_free(struct encoder **encoderp);
size_t encoder_push(struct encoder *encoder, struct slice bytes);
void encoder_flush(struct encoder *encoder);
void encoder_finish(struct encoder *encoder);
size_t encoder_pull(struct encoder *encoder, char *out, size_t capacity);
bool encoder_done(const struct encoder *encoder);
bool encoder_failed(const struct encoder *encoder);
uint64_t encoder_held(const struct encoder *encoder);

#endif
