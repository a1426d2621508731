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
 * Spare encoders are those that one exchange has done with, for the next. To open one takes longer
 * than to compress a page with it: the tables of its library are some hundred kilobytes, which the
 * system takes back each time and hands out again page by page. Those of
 * one coding are about 1 MB for gzip.
 *
 *     struct spare_encoders *spare = spare_encoders_new();
 *     ... encoder_create takes one, encoder_free gives it back ...
 *     spare_encoders_free(&spare);                           all of them are back
 *
 * Threads: an encoder belongs to one thread, spare encoders to any: a lock is held for some
 * instructions.
 */
#ifndef RETORT_GZIP_ENCODER_H
#define RETORT_GZIP_ENCODER_H

#include "gzip/codec.h"

struct encoder;
struct spare_encoders;

enum { SPARE_ENCODERS = 4 }; /* of each coding are kept at most */

struct spare_encoders *spare_encoders_new(void);
void spare_encoders_free(struct spare_encoders **sparep);
/* Takes one out; NULL: there is none. */
struct encoder *spare_encoders_take(struct spare_encoders *spare, enum coding coding);

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

#endif
