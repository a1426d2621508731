/*
 * A host of ICAP servers: one address that connections lead to, and what all workers know of its
 * silence: when one of them has heard from it last, and whether it has been checked since
 * (icap/host_check.h). All services there share it.
 *
 *     struct icap_host *host = icap_host_get(connection->remote);
 *     icap_host_heard(host, now - signs.heard);
 *     if (icap_host_due(host, 500) <= now && icap_host_claim(host, 500, now))
 *         ... it is this worker's turn to check it ...
 *         icap_host_answered(host);
 *         if (icap_host_unanswered(host)) ...     the host is lost
 *         icap_host_unclaim(host, again);         the check said nothing
 *     bool lost = icap_host_is_lost(host, now - signs.heard);     of each connection there
 *     icap_host_doubt(host, 500, now);     a packet is overdue: it is checked again
 *     icap_host_release(&host);
 *
 * A check is due when nothing has been heard for `quiet` milliseconds, and there is one check in a
 * silence: when it is answered, the keep-alive probes of the connections say the rest. One of them
 * may be lost on its way, so the host is checked again before that counts.
 *
 * Nothing but silence everywhere makes a silent check count. When something is heard after a check
 * has begun that nobody answers, the host is there and drops the packets that begin a connection (a
 * full backlog, a limit): from then on its silent checks say nothing, until one is answered.
 *
 * Units: milliseconds of the loops' clock. Threads: any; a lock for each host. Ownership:
 * references.
 */
#ifndef RETORT_ICAP_HOST_H
#define RETORT_ICAP_HOST_H

#include "net/address.h"

struct icap_host;

struct icap_host *icap_host_get(const struct address *address);
struct icap_host *icap_host_reference(struct icap_host *host);
void icap_host_release(struct icap_host **hostp);
const struct address *icap_host_address(const struct icap_host *host);

/* Something came from it at that time; earlier times change nothing. */
void icap_host_heard(struct icap_host *host, uint64_t at);
/* When a check is due, if nothing is heard before; TIMER_NEVER: it is being checked, or has been in
 * this silence. */
uint64_t icap_host_due(struct icap_host *host, uint64_t quiet);
/* A packet to it is overdue: a check is due, `quiet` behind the last one. */
void icap_host_doubt(struct icap_host *host, uint64_t quiet, uint64_t now);
/* False: it is not due, or another worker was faster. The check begins now. */
bool icap_host_claim(struct icap_host *host, uint64_t quiet, uint64_t now);
/* These are by whoever has claimed it, once. */
void icap_host_answered(struct icap_host *host);
/* True: it is lost. */
bool icap_host_unanswered(struct icap_host *host);
/* `again`: another worker is to check it at once. */
void icap_host_unclaim(struct icap_host *host, bool again);
/* Was it lost after the time when a connection to it has heard something last? */
bool icap_host_is_lost(struct icap_host *host, uint64_t heard_at);

#endif
