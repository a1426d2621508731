/*
 * Claims: the addresses that a start or a reload adds, each with its first listening socket, taken
 * before anything changes. So an address that can't be had refuses the whole, and one where another
 * retort listens is noticed, although the kernel would let both share it (SO_REUSEPORT).
 *
 *     struct claims *claims = claims_make(settings, NULL, &findings);
 *     if (findings.count > 0) ...                  no address is kept, claims is NULL
 *     int fd = claims_take(claims, i);             for settings->listens[i]; -1: it has none
 *     claims_free(&claims);                        closes what nobody took
 *
 * One worker takes them for its own listeners, the others open theirs beside them.
 * With settings->share_listeners other processes of this user may listen there as well.
 *
 * Threads: one after the other: the main thread makes them, a worker takes them.
 */
#ifndef RETORT_CLAIMS_H
#define RETORT_CLAIMS_H

#include "base/findings.h"
#include "settings/settings.h"

struct claims;

/* `old`: the settings whose addresses are listened at already; NULL: a start. */
struct claims *claims_make(const struct settings *settings, const struct settings *old,
                           struct findings *findings);
/* The caller owns the socket. */
int claims_take(struct claims *claims, size_t i);
void claims_free(struct claims **claimsp);

#endif
