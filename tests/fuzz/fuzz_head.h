/*
 * What must hold of every message head, whatever bytes it came from; shared by the fuzzers of
 * requests and responses.
 *
 *     fuzz_head(http_head_parse_request, http_head_write_request, data, size);
 *
 * A check that fails aborts, which is what libFuzzer looks for. Threads: one.
 */
#ifndef RETORT_TESTS_FUZZ_FUZZ_HEAD_H
#define RETORT_TESTS_FUZZ_FUZZ_HEAD_H

#include "http/head_parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parses the bytes whole and in two parts, checks what comes of it, and that writing and parsing it
 * again gives the same. Returns what the parser returned; then `head` is what it made. */
ssize_t fuzz_head(struct http_head *head,
                  ssize_t (*parse)(struct http_head *, const char *, size_t, size_t),
                  size_t (*write)(const struct http_head *, char *, size_t), const char *bytes,
                  size_t length);

#endif
