/*
 * What an old process tells the one that takes over while both run: the names of stored responses
 * that its clients have made stale. The new process may have stored them.
 *
 *     new process: struct invalidation_relay *told = invalidation_relay_listen(remove, context, &fd);
 *                  ... pass fd to the old process and close it ...
 *                  invalidation_relay_stop(&told);
 *     old process: if (!invalidation_relay_tell(fd, url)) ...        not removed there, as far as is known
 *
 * Each name is a message on a pair of Unix sockets that keep the bounds of messages. The answer is a
 * byte, after the removal.
 *
 * A process that is taken over itself may end before the old one does. It gives the next one copies
 * of the descriptors at which it hears (invalidation_relay_copy, invalidation_relay_add). Whichever of both
 * gets a message removes, and the earlier one of them passes it on.
 *
 * Threads: `remove` is called in a thread of the new process; invalidation_relay_tell blocks, for
 * TOLD_PATIENCE milliseconds at most, one call at a time; the others from any thread.
 */
#ifndef RETORT_TAKEOVER_INVALIDATION_RELAY_H
#define RETORT_TAKEOVER_INVALIDATION_RELAY_H

#include "base/slice.h"

#include <stdbool.h>

enum { TOLD_PATIENCE = 2000, TOLD_LENGTH_MAX = 128 * 1024, TOLD_PROCESSES = 16 };

typedef void invalidation_relay_fn(void *context, struct slice url);

struct invalidation_relay;

/* *fd is the end for the old process, which the caller closes. NULL: there is no descriptor or no
 * thread left. */
struct invalidation_relay *invalidation_relay_listen(invalidation_relay_fn *remove, void *context,
                                                     int *fd);
/* Returns after the last call of `remove`. NULL does nothing. */
void invalidation_relay_stop(struct invalidation_relay **toldp);
/* Stores where this process hears, and returns the number. The caller closes them. NULL: nowhere. */
unsigned invalidation_relay_copy(struct invalidation_relay *told, int fds[TOLD_PROCESSES]);
/* Hears there too. The descriptor belongs to `told` then; it is closed when there are too many. */
void invalidation_relay_add(struct invalidation_relay *told, int fd);

/* False: the other process has ended, or does not answer. Then all further calls are in vain, and the
 * caller closes the descriptor. */
bool invalidation_relay_tell(int fd, struct slice url);

#endif
