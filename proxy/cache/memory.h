/*
 * Memory for what the cache holds: objects and bodies.
 *
 *     char *at = memory_alloc(size);                    NULL: there is none
 *     bytes += memory_cost(size);                       what it really takes
 *     memory_free(at, size);                            the size that was asked for
 *
 * Threads: any.
 */
#ifndef RETORT_CACHE_MEMORY_H
#define RETORT_CACHE_MEMORY_H

#include <stddef.h>

void *memory_alloc(size_t size);
void memory_free(void *at, size_t size);
size_t memory_cost(size_t size);

#endif
