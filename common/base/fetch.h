/*
 * Memory that will be needed soon: what is asked for ahead need not be waited for later.
 *
 *     for (i = 0; i < count; i++) {
 *         if (i + 1 < count)
 *             fetch_ahead(objects[i + 1], sizeof *objects[i + 1]);     comes while this one is used
 *         use(objects[i]);
 *     }
 *
 * Nothing is read: any address will do, NULL too. Threads: any.
 */
#ifndef RETORT_BASE_FETCH_H
#define RETORT_BASE_FETCH_H

#include <stddef.h>
#include <stdint.h>

enum { CACHE_LINE = 64 };

/* The lines in which these bytes stand, of which there is one at least. Always inlined: GCC takes a
 * function that only prefetches for one without effect, and leaves out the call. */
static inline __attribute__((always_inline)) void fetch_ahead(const void *first, size_t length) {
    uintptr_t at = (uintptr_t)first, last = at + length - 1;
    for (; at < last; at += CACHE_LINE)
        __builtin_prefetch((const void *)at);
    __builtin_prefetch((const void *)last);
}

#endif
