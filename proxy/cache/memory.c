#include "cache/memory.h"

#include <stdlib.h>

void *memory_alloc(size_t size) {
    return malloc(size);
}

void memory_free(void *at, size_t size) {
    free(at);
}

/* glibc: a word before it, in steps of sixteen. */
size_t memory_cost(size_t size) {
    return (size + 8 + 15) & ~(size_t)15;
}
