/*
 * Claims: the addresses that a start or a reload adds, each with its first listening socket. The
 * sockets are opened before anything else changes. So a start or a reload is refused as a whole
 * when one address is not available. An address at which another retort listens is noticed too,
 * although the kernel would let both processes share it (SO_REUSEPORT).
 *
 *     struct claims *claims = claims_make(settings, NULL, &findings);
 *     if (findings.count > 0) ...                  no address is kept, claims is NULL
 *     int fd = claims_take(claims, i);             for settings->listens[i]; -1: there is no claim
 *     claims_free(&claims);                        closes the sockets that nobody took
 *
 * One worker takes the sockets for its own listeners; the other workers open more sockets at the
 * same addresses. With settings->share_listeners, other processes of this user may listen there
 * too.
 *
 * Threads: one at a time: the thread of the start or the reload makes claims, a worker takes them.
 */
#ifndef RETORT_CLAIMS_H
#define RETORT_CLAIMS_H

#include "base/findings.h"
#include "settings/settings.h"

struct claims;

/* `old`: the settings in use, whose addresses need no claim; NULL: this is a start. */
struct claims *claims_make(const struct settings *settings, const struct settings *old,
                           struct findings *findings);
/* Returns a socket, which then belongs to the caller; -1: there is no claim. */
int claims_take(struct claims *claims, size_t i);
void claims_free(struct claims **claimsp);

#endif
