/*
 * Allocates memory for the cache, so that the limit of the cache is a limit for the memory that the
 * process really takes.
 *
 *     char *at = memory_alloc(size);                    NULL: there is none
 *     memory_free(at, size);                            the size that was asked for
 *     while (memory_held() > limit) ...                 evict
 *
 * malloc can't be held to a limit. When sizes from 200 bytes to a megabyte come and go, the memory
 * that malloc keeps for itself grows to half of the memory in use and more. This allocator takes
 * memory in pages. Small blocks share a slab with others of their size, in steps of eight or
 * sixteen bytes. Larger blocks take whole pages, at most MEMORY_LARGEST in one piece. An empty page
 * goes back to the system, except for a reserve. memory_held counts everything: pages that are in
 * use, even in part, pages in the reserve, and the pages that describe the others.
 *
 * Threads: any; one lock, which hits do not take. Under sanitizers all memory comes from malloc, so
 * that they can check its use.
 */
#ifndef RETORT_CACHE_MEMORY_H
#define RETORT_CACHE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum { MEMORY_PAGE = 4096, MEMORY_LARGEST = 16 * MEMORY_PAGE };

void *memory_alloc(size_t size);
/* Sets the function that gives memory back when memory_alloc has found none; it returns true if it
 * gave some back. Must be set before threads start; NULL: there is no such function. */
void memory_set_giver(bool (*give)(void *arg), void *arg);
/* Like memory_alloc, but calls the giver when memory is short. The caller must hold no lock that
 * the giver takes. */
void *memory_alloc_hard(size_t size);
/* Like memory_alloc, for small blocks that the caller can't do without: never NULL, since it spends
 * the reserve (base/reserve.h) when memory is short. */
void *memory_need(size_t size);
void memory_free(void *at, size_t size);
/* Prefetches the memory that memory_free will read. */
void memory_prefetch_free(const void *at, size_t size);
/* Bytes of memory that an allocation of that size takes. */
size_t memory_cost(size_t size);
size_t memory_held(void);
/* These bytes will be allocated soon. They count as held until memory_take_back is called. */
void memory_promise(size_t bytes);
void memory_take_back(size_t bytes);
/* Sets how many bytes of free pages are kept for the next allocations. */
void memory_set_reserve(size_t bytes);

#endif
