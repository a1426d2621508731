/*
 * Inputs that are steps: bytes, each of which is a kind of step or a number that belongs to one, so
 * that the fuzzer finds sequences rather than lengths.
 *
 *     struct steps steps = steps_of(data, size);
 *     while (!steps_end(&steps))
 *         switch (steps_byte(&steps)) ...
 *         struct slice bytes = steps_bytes(&steps);      a length, and so many bytes
 *
 * Behind the end there are zeros. Threads: one.
 */
#ifndef RETORT_TESTS_FUZZ_STEPS_H
#define RETORT_TESTS_FUZZ_STEPS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct steps {
    const uint8_t *at, *end;
};

struct steps steps_of(const uint8_t *data, size_t size);
bool steps_end(const struct steps *steps);
uint8_t steps_byte(struct steps *steps);
/* Those of the input, or fewer than the length says. */
struct slice steps_bytes(struct steps *steps);

#endif
