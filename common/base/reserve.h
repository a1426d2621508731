/*
 * The reserve: address space and memory that is set aside at the start. A program that runs out of
 * memory uses it for small objects, to finish the work it has begun and to refuse new work.
 *
 *     reserve_open(16 MB);                          once, before threads
 *     while ((at = malloc(size)) == NULL)
 *         reserve_spend(size);                      what xmalloc and its like do
 *     if (reserve_is_low()) ...                     begin no new work
 *     if (reserve_take_notice()) ...                memory ran short since the last call: free some
 *     reserve_refill();                             now and then, until the reserve is full again
 *
 * The reserve is for small objects only. For large ones call malloc, and handle NULL.
 *
 * reserve_spend ends the process with a message when there is no reserve, or when the reserve is
 * spent and nobody frees memory for RESERVE_PATIENCE milliseconds. Threads: any.
 */
#ifndef RETORT_BASE_RESERVE_H
#define RETORT_BASE_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

enum { RESERVE_PATIENCE = 5000, RESERVE_PIECE = 1 << 20 };

void reserve_open(size_t bytes);
/* Call it when an allocation failed. It gives a part of the reserve back to the system, or waits a
 * millisecond for others to free memory. Then the caller tries again. */
void reserve_spend(size_t wanted);
/* Call it when an allocation failed that the program can do without. */
void reserve_note(void);
/* Is more than half of the reserve spent? The rest is for work that has begun. */
bool reserve_is_low(void);
/* Has an allocation failed since the last call? */
bool reserve_take_notice(void);
void reserve_refill(void);

#endif
