/*
 * Claims: the addresses that a start or a reload adds, each with its first listening sockets. The
 * sockets are opened before anything else changes. So a start or a reload is refused as a whole
 * when one address is not available. An address at which another retort listens is noticed too,
 * although the kernel would let both processes share it (SO_REUSEPORT).
 *
 *     struct claims *claims = claims_make(settings, NULL, inherited, &findings);
 *     if (findings.count > 0) ...                  no address is kept, claims is NULL
 *     int fd = claims_take(claims, i, index);      for settings->listens[i]; -1: there is none left
 *     claims_free(&claims);                        closes the sockets that nobody took
 *
 * Normally there is one socket for each address. The worker that asks first takes it for its own
 * listener, and the other workers open more sockets at the same address. With
 * settings->share_listeners, other processes of this user may listen there too.
 *
 * Sockets that another process opened (takeover/inherited.h) are used instead of new ones, and all of them,
 * because connections wait in the queue of each. They are dealt out to the workers. Where there are
 * fewer sockets than workers, workers share them. So no worker opens another one, in whose queue
 * connections would be lost when this process ends before the one that opened the first.
 *
 * Threads: one at a time: the thread of the start or the reload makes claims, a worker takes them.
 */
#ifndef RETORT_CLAIMS_H
#define RETORT_CLAIMS_H

#include "base/findings.h"
#include "net/inherited.h"
#include "settings/settings.h"

struct claims;

/* `old`: the settings in use, whose addresses need no claim; NULL: this is a start. `inherited`
 * may be NULL. */
struct claims *claims_make(const struct settings *settings, const struct settings *old,
                           struct inherited *inherited, struct findings *findings);
/* Returns a socket for this worker, which then belongs to the caller; -1: there is none left. */
int claims_take(struct claims *claims, size_t i, unsigned worker);
void claims_free(struct claims **claimsp);

#endif
