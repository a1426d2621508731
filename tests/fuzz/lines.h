/*
 * Inputs that are text: the fuzzers of what stands behind the parsers take lines and heads rather
 * than bytes, so that their corpora can be read and written by hand.
 *
 *     struct lines lines = lines_of(data, size);
 *     struct slice first = lines_next(&lines);       up to the line's end, without it
 *     uint64_t length = lines_number(&lines);        a line; 0 when it is not a number
 *     lines_head(&lines, &head);                     field lines up to an empty one
 *     ...
 *     lines_head_free(&head);
 *
 * Names and values of such a head are heap blocks of their own size each: AddressSanitizer sees
 * whoever reads past one. Lines that no parser would let through are left out.
 *
 * Threads: one.
 */
#ifndef RETORT_TESTS_FUZZ_LINES_H
#define RETORT_TESTS_FUZZ_LINES_H

#include "http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct lines {
    struct slice rest;
};

struct lines lines_of(const uint8_t *data, size_t size);
/* Empty at the end of the input. */
struct slice lines_next(struct lines *lines);
uint64_t lines_number(struct lines *lines);
/* A number with a sign, cut off at `most` either way. */
int64_t lines_signed(struct lines *lines, int64_t most);

/* A copy in memory of its own size, also when that is 0; whoever asked frees the base. */
struct slice lines_copy(struct slice text);
/* "Name: value"; false for what is not a field. The slices are those of the line. */
bool lines_field(struct slice line, struct slice *name, struct slice *value);

/* Field lines up to and with an empty one; names and values copied. */
void lines_head(struct lines *lines, struct http_head *head);
void lines_head_free(struct http_head *head);

#endif
