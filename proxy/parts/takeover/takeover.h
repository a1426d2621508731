/*
 * Takeover: this process takes the place of one that runs, without refusing or resetting a
 * connection (`retort --take-over`; takeover/handover.h is the other side).
 *
 *     struct takeover *takeover = takeover_begin(settings, inherited, error);   its sockets
 *     ... check everything that can fail ...
 *     if (!takeover_get_disks(takeover, error)) ...
 *     server_open(server, true, error)
 *     ... prepare the rest, but accept no connection ...
 *     if (!takeover_may_serve(takeover, fd, error)) ...
 *     ... accept connections ...
 *     if (!takeover_finish(takeover, look, context, error)) ...     the other process retires
 *     ...
 *     takeover_free(&takeover);
 *
 * A process that ends before takeover_finish leaves everything to the other one. When the other one
 * has ended, this one goes on, because it has the sockets. When the other one runs but does not
 * answer, this one gives up: two processes never serve or write to one disk without knowing of each
 * other.
 *
 * Threads: one of its own after takeover_finish, which waits for the end of the other process. All
 * calls from the main thread.
 */
#ifndef RETORT_TAKEOVER_TAKEOVER_H
#define RETORT_TAKEOVER_TAKEOVER_H

#include "net/inherited.h"

#include "settings/settings.h"

struct takeover;

/* Returns NULL with a message when no retort answers, or it refuses. */
struct takeover *takeover_begin(const struct settings *settings, struct inherited *inherited,
                                char error[SETTINGS_ERROR]);
/* The next three: false with a message: the other process runs, and goes on to serve. */
bool takeover_get_disks(struct takeover *takeover, char error[SETTINGS_ERROR]);
/* `removals` is passed to the other process, and stays the caller's (takeover/invalidation_relay.h); -1:
 * there is none. */
bool takeover_may_serve(struct takeover *takeover, int removals, char error[SETTINGS_ERROR]);
/* `look` is called when the other process accepts nothing any more, and when it has ended, from any
 * thread: connections may wait that the kernel has announced to that process only. */
bool takeover_finish(struct takeover *takeover, void (*look)(void *context), void *context,
                     char error[SETTINGS_ERROR]);
/* After takeover_finish: moves a descriptor at which processes from before tell removals. -1: there
 * are no more. */
int takeover_take_removals(struct takeover *takeover);
/* Forgets the other process, which learns that this one ends as it should. NULL does nothing. */
void takeover_free(struct takeover **takeoverp);

#endif
