/*
 * A body without its content coding (RFC 9110 §8.4): gzip, br or zstd.
 *
 *     char *bytes = decoded_body(SLICE("gzip"), body, &length);      NULL: it can't be decoded
 *     free(bytes);
 *
 * A service that compresses may write other bytes when it is asked to release what it keeps back;
 * then what the bytes mean has to be the same. Threads: any.
 */
#ifndef RETORT_TESTER_DECODED_H
#define RETORT_TESTER_DECODED_H

#include "base/slice.h"

char *decoded_body(struct slice coding, struct slice body, size_t *length);

#endif
