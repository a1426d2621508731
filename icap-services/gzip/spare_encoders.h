/*
 * Spare encoders: encoders that one exchange has done with, for the next. To open one takes longer
 * than to compress a page with it: the tables of its library are some hundred kilobytes, which the
 * system takes back each time and hands out again page by page.
 *
 *     struct spare_encoders *spare = spare_encoders_new();
 *     struct encoder *encoder = encoder_create(spare, CODING_GZIP, 6, length);
 *     encoder_free(&encoder);                                 gives it back
 *     spare_encoders_free(&spare);                            all of them are back
 *
 * At most SPARE_ENCODERS of each coding are kept, which is about 1 MB for gzip.
 *
 * Threads: any; a lock is held for some instructions.
 */
#ifndef RETORT_GZIP_SPARE_ENCODERS_H
#define RETORT_GZIP_SPARE_ENCODERS_H

#include "gzip/codec.h"

struct encoder;
struct spare_encoders;

enum { SPARE_ENCODERS = 4 };

struct spare_encoders *spare_encoders_new(void);
void spare_encoders_free(struct spare_encoders **sparep);

/* For encoder.c. */
/* NULL: there is none. */
struct encoder *spare_encoders_take(struct spare_encoders *spare, enum coding coding);
/* False: there are enough; the encoder stays the caller's. */
bool spare_encoders_give(struct spare_encoders *spare, enum coding coding, struct encoder *encoder);

#endif
