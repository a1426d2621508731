/*
 * Tells whether a body is worth compressing: it compresses the beginning of the body quickly, with
 * little memory.
 *
 *     sample_gain(first_kilobyte)         40: it became 40 % smaller; 0: not smaller at all
 *
 * Threads: pure.
 */
#ifndef RETORT_GZIP_SAMPLE_H
#define RETORT_GZIP_SAMPLE_H

#include "base/slice.h"

/* The gain in percent. It is 100 when the sample can't be tried: there is no memory, or the sample
 * is longer than SAMPLE_MAX bytes. */
unsigned sample_gain(struct slice bytes);

enum { SAMPLE_MAX = 16384 };

#endif
