/* The fuzzer of HPACK, which compare_hpack.c runs as a test. */
#ifndef RETORT_TESTS_FUZZ_FUZZ_HPACK_H
#define RETORT_TESTS_FUZZ_FUZZ_HPACK_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
