/*
 * The look that an endpoint takes at its connections, every now and then while something is under
 * way there: is their host still there? A service may think for as long as it likes; the kernel of
 * its host answers all the same.
 *
 *     icap_look_init(&endpoint->look);
 *     icap_look_add(endpoint, &call->link);       the call has a place; it removes the link itself
 *     icap_look_go_on(endpoint);                  something else is under way
 *     static void icap_call_look(call):           at each look, for each call
 *         if (icap_look_finds_lost(endpoint, call->connection, call->heard_at, &call->doubts)) ...
 *     icap_look_end(&endpoint->look, loop);
 *
 * There are two signs that a host is lost.
 *
 * - Packets of the connection are unacknowledged: data, or keep-alive probes of the kernel, which
 *   come after a second of silence. Two looks in a row must find that, connect_timeout must have
 *   passed since something was heard, and more than one packet must be overdue. A single one may
 *   have been lost on its way: the host is checked then, and is lost if it does not answer that
 *   either.
 * - The connection has heard nothing since a check of the host began that nobody answered
 *   (icap/host.h). A connection where nothing is unacknowledged would learn of a cut link after
 *   more than a second otherwise, since keep-alive counts in whole seconds. Where connect_timeout
 *   is more than ICAP_LOOK_CHECK_MOST, hosts are checked only when a packet is overdue.
 *
 * A check begins ICAP_LOOK_QUIET after the last packet, and ends ICAP_LOOK_CHECK_LEAST later, or
 * connect_timeout if that is longer, when nobody answers it. When it is answered and the link is cut
 * behind that, each connection has been silent for so long that its keep-alive probe comes in time,
 * and the check behind that ends ICAP_LOOK_DOUBT_LEAST later, or a third of connect_timeout.
 * Both ways a cut link is noticed within a second, with a little time left for a busy machine.
 *
 * Threads: one per endpoint. Units: milliseconds.
 */
#ifndef RETORT_ICAP_LOOK_H
#define RETORT_ICAP_LOOK_H

#include "event/loop.h"
#include "icap/host.h"
#include "net/connection.h"

struct icap_endpoint;

enum {
    ICAP_LOOK_HOSTS = 4, /* addresses of an endpoint that are told apart at a time */
    ICAP_LOOK_QUIET = 375,
    ICAP_LOOK_CHECK_LEAST = 350, /* for the answer to a check */
    ICAP_LOOK_CHECK_MOST = 500,
    ICAP_LOOK_DOUBT_LEAST = 200, /* for the answer, where a packet is overdue already */
};

struct icap_look_host {
    struct icap_host *host; /* NULL: a free slot */
    bool awaited;           /* a connection there waits for its service, at this look */
    bool doubted;           /* and a packet of it is overdue */
};

struct icap_look {
    struct timer timer;
    bool going;  /* the timer is set */
    bool counts; /* this look is long enough behind the last one that did */
    uint64_t counted_at;
    struct list_link calls; /* that have a place */
    struct icap_look_host hosts[ICAP_LOOK_HOSTS];
    unsigned next_slot;
    struct list_link checks; /* under way */
};

void icap_look_init(struct icap_look *look);
/* There are no calls any more. */
void icap_look_end(struct icap_look *look, struct loop *loop);
void icap_look_add(struct icap_endpoint *endpoint, struct list_link *call);
void icap_look_go_on(struct icap_endpoint *endpoint);
/* Looks as soon as the loop comes to it, if there are calls. */
void icap_look_soon(struct icap_endpoint *endpoint);
/* Is the host of this connection lost, which waits for its service? `heard_at`: when bytes came
 * last. Counts in *doubts: one look alone decides nothing of packets without an answer. */
bool icap_look_finds_lost(struct icap_endpoint *endpoint, const struct connection *connection,
                          uint64_t heard_at, unsigned *doubts);

#endif
