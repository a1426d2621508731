/*
 * The reserve: address space and memory set aside at the start, for the small things that a program
 * which runs out of memory needs to finish what it has begun and to say no to what comes.
 *
 *     reserve_open(16 MB);                          once, before threads
 *     while ((at = malloc(size)) == NULL)
 *         reserve_spend(size);                      what xmalloc and its like do
 *     if (reserve_is_low()) ...                     begin nothing new
 *     if (reserve_take_notice()) ...                memory ran short since the last call: give back
 *     reserve_refill();                             now and then, until there is some again
 *
 * Only for small things: whoever wants much asks malloc, and does without.
 *
 * Without a reserve, or when it is spent and nobody gives memory back for RESERVE_PATIENCE
 * milliseconds, reserve_spend ends the process with a message, as nothing else can be done.
 * Threads: any.
 */
#ifndef RETORT_BASE_RESERVE_H
#define RETORT_BASE_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

enum { RESERVE_PATIENCE = 5000, RESERVE_PIECE = 1 << 20 };

void reserve_open(size_t bytes);
/* Memory was refused: gives some of the reserve back to the system, or waits for others to free
 * theirs. The caller tries again. */
void reserve_spend(size_t wanted);
/* Memory was refused for something that can be done without. */
void reserve_note(void);
/* The half of it is gone: the rest is for what has begun. */
bool reserve_is_low(void);
/* Was any refused since the last call? */
bool reserve_take_notice(void);
void reserve_refill(void);

#endif
