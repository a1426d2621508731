/*
 * Is it worth compressing? Tries the beginning of a body quickly, with little memory.
 *
 *     sample_gain(first_kilobyte)         40: it became 40 % smaller; 0: not smaller at all
 *
 * Threads: pure.
 */
#ifndef RETORT_GZIP_SAMPLE_H
#define RETORT_GZIP_SAMPLE_H

#include "base/slice.h"

/* In percent. 100 when it can't be tried: no memory, or longer than SAMPLE_MAX. */
unsigned sample_gain(struct slice bytes);

enum { SAMPLE_MAX = 16384 };

#endif
