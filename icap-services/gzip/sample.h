/*
 * Tells whether a body is worth compressing, by its beginning.
 *
 *     sample_gains(first_kilobyte, 5)         true: it becomes smaller by 5 % or more
 *
 * For most texts it is enough to count how often each byte occurs, which takes a tenth of the time
 * of compressing. Where that does not tell, the beginning is compressed quickly, with little memory.
 *
 * Threads: pure.
 */
#ifndef RETORT_GZIP_SAMPLE_H
#define RETORT_GZIP_SAMPLE_H

#include "base/slice.h"

/* True also when the sample can't be tried: there is no memory, it is empty, or it is longer than
 * SAMPLE_MAX bytes. */
bool sample_gains(struct slice bytes, unsigned percent);

/* As much as the service asks for in a preview, wherever it runs. */
enum { SAMPLE_MAX = 1024 };

#endif
