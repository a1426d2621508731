/*
 * Prefetching: asks the processor for memory that will be needed soon, so that the program does not
 * wait for it later.
 *
 *     for (i = 0; i < count; i++) {
 *         if (i + 1 < count)
 *             fetch_ahead(objects[i + 1], sizeof *objects[i + 1]);     arrives meanwhile
 *         use(objects[i]);
 *     }
 *
 * fetch_ahead does not read the memory, so any address is allowed, NULL too. Threads: any.
 */
#ifndef RETORT_BASE_FETCH_H
#define RETORT_BASE_FETCH_H

#include <stddef.h>
#include <stdint.h>

enum { CACHE_LINE = 64 };

/* Fetches the cache lines of these bytes; `length` is at least 1. The function is always inlined:
 * GCC treats a function that only prefetches as one without effect, and removes the call. */
static inline __attribute__((always_inline)) void fetch_ahead(const void *first, size_t length) {
    uintptr_t at = (uintptr_t)first, last = at + length - 1;
    for (; at < last; at += CACHE_LINE)
        __builtin_prefetch((const void *)at);
    __builtin_prefetch((const void *)last);
}

#endif
