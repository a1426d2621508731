/*
 * Guarded memory: bytes that end where a page begins that nobody may touch. A service that reads
 * behind a piece of the body, or writes behind the room for its result, crashes there.
 *
 *     struct guarded guarded = {0};
 *     char *bytes = guarded_take(&guarded, length);          for the call
 *     ... a call of the service ...
 *     if (!guarded_is_intact(&guarded)) ...                  it wrote in front of them
 *     guarded_spoil(&guarded);                               a pointer to them is of no use now
 *     guarded_release(&guarded);
 *
 * Threads: belongs to one thread.
 */
#ifndef RETORT_TESTER_GUARDED_H
#define RETORT_TESTER_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

struct guarded {
    char *memory; /* NULL: none yet */
    size_t size;  /* without the guard */
    size_t taken;
};

/* Valid until the next call. */
char *guarded_take(struct guarded *guarded, size_t length);
bool guarded_is_intact(const struct guarded *guarded);
void guarded_spoil(struct guarded *guarded);
void guarded_release(struct guarded *guarded);

#endif
