/*
 * Memory for what the cache holds, so that its limit is one for memory that the process really
 * takes.
 *
 *     char *at = memory_alloc(size);                    NULL: there is none
 *     memory_free(at, size);                            the size that was asked for
 *     while (memory_held() > limit) ...                 evict
 *
 * malloc can't be held to a limit: with sizes from 200 bytes to a megabyte coming and going, what
 * it keeps for itself grows to the half of what is in use and beyond. Here memory comes in pages.
 * What is smaller than a page shares a slab with others of its size, in steps of eight or sixteen
 * bytes; what is larger takes whole pages, at most MEMORY_LARGEST in one piece. A page that nothing
 * stands in goes back to the system, but for a reserve. memory_held is everything: pages in use,
 * however little of them, pages in reserve, and what describes them.
 *
 * Threads: any; one lock, not taken by hits. Under sanitizers it is all malloc, so that they see
 * what happens to it.
 */
#ifndef RETORT_CACHE_MEMORY_H
#define RETORT_CACHE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum { MEMORY_PAGE = 4096, MEMORY_LARGEST = 16 * MEMORY_PAGE };

void *memory_alloc(size_t size);
/* Who can give back what it holds, where memory_alloc has found nothing: true where some came free.
 * Set before threads; NULL: nobody can. */
void memory_set_giver(bool (*give)(void *arg), void *arg);
/* The same, having what is held given back if need be; under no lock that a giver takes. */
void *memory_alloc_hard(size_t size);
/* The same for small things that can't be done without: draws on the reserve (base/reserve.h). */
void *memory_need(size_t size);
void memory_free(void *at, size_t size);
/* Has the processor fetch what memory_free will look at. */
void memory_prefetch_free(const void *at, size_t size);
/* What an allocation of that size takes. */
size_t memory_cost(size_t size);
size_t memory_held(void);
/* Will be allocated soon, and counts as held until it is taken back. */
void memory_promise(size_t bytes);
void memory_take_back(size_t bytes);
/* How many bytes of free pages are kept for the next that ask. */
void memory_set_reserve(size_t bytes);

#endif
