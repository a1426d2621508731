/*
 * Where a request would go: the addresses of its host, which access sections and others ask for.
 *
 *     if (decision.outcome == ACCESS_RESOLVE && !access_destination_resolve(transaction))
 *         return STEP_WAIT;                          the transaction's task runs when it is over
 *     ...
 *     if (!access_destination_is_known(transaction))
 *         return STEP_WAIT;
 *
 * The host is resolved once, also when there is no such name.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_ACCESS_DESTINATION_H
#define RETORT_ACCESS_DESTINATION_H

#include "http/url.h"

#include <stdbool.h>

struct access_state;
struct transaction;

/* True: it is over at once. */
bool access_destination_resolve(struct transaction *transaction);
/* False: the host is being resolved, so wait. True: it is not, or what was found is noted now. */
bool access_destination_is_known(struct transaction *transaction);
/* Was the host resolved, and has no address? */
bool access_destination_is_nowhere(const struct transaction *transaction);
/* Ends what is under way. It may be called again. */
void access_destination_end(struct transaction *transaction);
/* A client of a transparent listener has chosen the address itself. */
void access_destination_take_redirection(struct transaction *transaction);
/* Before RECHECK decides, and harmless when that goes on: forgets the addresses if the request names
 * another host by now. */
void access_destination_begin_again(struct transaction *transaction);
/* Is that another host or port than the one that was decided about? */
bool access_is_elsewhere(const struct access_state *access, const struct url *url);

#endif
