/*
 * Spare codecs: states of the compression libraries that one exchange has done with, for the next.
 * To open a state takes longer than to compress a page with it: its tables are some hundred
 * kilobytes, which the system takes back each time and hands out again page by page.
 *
 *     struct spare_codecs *spare = spare_codecs_new();
 *     void *state = spare_codecs_take(spare, CODING_GZIP, 6, length);    NULL: no memory
 *     ... codec_of(CODING_GZIP)->run ...
 *     spare_codecs_give(spare, CODING_GZIP, &state);
 *     spare_codecs_free(&spare);                                         all of them are back
 *
 * At most SPARE_CODECS of each coding are kept, which is about 1 MB for gzip.
 *
 * Threads: any; a lock is held for some instructions.
 */
#ifndef RETORT_GZIP_SPARE_CODECS_H
#define RETORT_GZIP_SPARE_CODECS_H

#include "gzip/codec.h"

struct spare_codecs;

enum { SPARE_CODECS = 4 };

struct spare_codecs *spare_codecs_new(void);
void spare_codecs_free(struct spare_codecs **sparep);
/* A state as codec->open gives it. */
void *spare_codecs_take(struct spare_codecs *spare, enum coding coding, int quality,
                        uint64_t length);
void spare_codecs_give(struct spare_codecs *spare, enum coding coding, void **statep);

#endif
