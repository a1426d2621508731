#include "adapt/content_numbers.h"

#include "base/assert.h"

struct content_numbers *content_numbers_new(void) {
    struct content_numbers *numbers;
    ALLOC_OBJ(numbers, CONTENT_NUMBERS_MAGIC);
    atomic_init(&numbers->references, 1);
    return numbers;
}

struct content_numbers *content_numbers_reference(struct content_numbers *numbers) {
    CHECK_OBJ(numbers, CONTENT_NUMBERS_MAGIC);
    atomic_fetch_add(&numbers->references, 1);
    return numbers;
}

void content_numbers_release(struct content_numbers **numbersp) {
    struct content_numbers *numbers = *numbersp;
    *numbersp = NULL;
    CHECK_OBJ(numbers, CONTENT_NUMBERS_MAGIC);
    if (atomic_fetch_sub(&numbers->references, 1) == 1)
        FREE_OBJ(numbers);
}

void content_numbers_report(const struct content_numbers *numbers, struct content_report *report) {
    *report = (struct content_report){
        .started = atomic_load(&numbers->started),
        .refused = atomic_load(&numbers->refused),
        .failed = atomic_load(&numbers->failed),
        .fetched = atomic_load(&numbers->fetched),
        .injected_bytes = atomic_load(&numbers->injected_bytes),
        .read_bytes = atomic_load(&numbers->read_bytes),
        .open = atomic_load(&numbers->open),
        .held_bytes = atomic_load(&numbers->held_bytes),
    };
}
