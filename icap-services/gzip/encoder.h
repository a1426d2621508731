/*
 * An encoder compresses a stream: it takes bytes and gives compressed bytes, with a bounded buffer
 * between them.
 *
 *     struct encoder *encoder = encoder_create(spare, CODING_GZIP, 6, length);   NULL: no memory
 *     size_t took = encoder_push(encoder, bytes);            may take fewer: pull, then push again
 *     encoder_flush(encoder);                                all bytes taken so far shall come out
 *     encoder_finish(encoder);                               no more input
 *     size_t got = encoder_pull(encoder, out, capacity);
 *     if (encoder_failed(encoder)) ...                       the library has no memory
 *     if (encoder_done(encoder)) ...                         finished and pulled empty
 *     encoder_free(&encoder);
 *
 * A flush makes the output some bytes larger. It is worth that when a reader waits for what is
 * inside the encoder. encoder_held tells how many bytes were taken since the last flush.
 *
 * Threads: belongs to one thread.
 */
#ifndef RETORT_GZIP_ENCODER_H
#define RETORT_GZIP_ENCODER_H

#include "gzip/spare_encoders.h"

struct encoder;

/* `length` is that of the body, or CODEC_LENGTH_UNKNOWN; a hint. `spare` lives longer. */
struct encoder *encoder_create(struct spare_encoders *spare, enum coding coding, int quality,
                               uint64_t length);
void encoder_free(struct encoder **encoderp);
size_t encoder_push(struct encoder *encoder, struct slice bytes);
void encoder_flush(struct encoder *encoder);
void encoder_finish(struct encoder *encoder);
size_t encoder_pull(struct encoder *encoder, char *out, size_t capacity);
bool encoder_done(const struct encoder *encoder);
bool encoder_failed(const struct encoder *encoder);
uint64_t encoder_held(const struct encoder *encoder);
/* For spare_encoders.c: an encoder that nobody takes any more. */
void encoder_destroy(struct encoder **encoderp);

#endif
