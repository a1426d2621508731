#include "steps.h"

struct steps steps_of(const uint8_t *data, size_t size) {
    return (struct steps){data, data + size};
}

bool steps_end(const struct steps *steps) {
    return steps->at == steps->end;
}

uint8_t steps_byte(struct steps *steps) {
    return steps->at < steps->end ? *steps->at++ : 0;
}

struct slice steps_bytes(struct steps *steps) {
    size_t length = steps_byte(steps), left = (size_t)(steps->end - steps->at);
    length = length < left ? length : left;
    steps->at += length;
    return slice_make((const char *)steps->at - length, length);
}
