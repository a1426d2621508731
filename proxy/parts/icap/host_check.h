/*
 * A check whether a host is there: does its kernel answer the first packet of a TCP connection?
 *
 *     host_check_start(&check, net, &address, 300, &waiter->task);
 *     ... the task runs ...
 *     if (check.state == HOST_CHECK_UNANSWERED) ...     no answer within 300 milliseconds
 *     host_check_stop(&check);                          any time
 *
 * A refusal is an answer too. The handshake is never completed: the answer of the other side is
 * answered with a reset. So no program there learns of the check, and it takes no place in the
 * backlog of the port and no thread of the server.
 *
 * A lost packet is no silence: there are HOST_CHECK_TRIES tries, each from another port, one after
 * the other, and the last one has as long as the others. Each try is begun when the time of the one
 * before is over by the loop's own clock, so that a machine that stood still for a while does not
 * take that for the silence of the host.
 *
 * A host whose port has a full backlog drops that packet, although the host is there.
 *
 * Threads: the loop's thread only. Units: milliseconds. Errors: HOST_CHECK_IMPOSSIBLE, when this
 * machine can't make the check (no descriptors, no ports, a firewall here).
 */
#ifndef RETORT_ICAP_HOST_CHECK_H
#define RETORT_ICAP_HOST_CHECK_H

#include "net/address.h"
#include "net/context.h"

enum { HOST_CHECK_TRIES = 3 };

enum host_check_state {
    HOST_CHECK_IDLE,
    HOST_CHECK_ASKING,
    HOST_CHECK_ANSWERED,
    HOST_CHECK_UNANSWERED,
    HOST_CHECK_IMPOSSIBLE,
};

struct host_check {
    unsigned magic;
#define HOST_CHECK_MAGIC 0x405c4ec4u
    enum host_check_state state;
    struct net_context *net;
    struct address address;
    uint64_t patience;
    struct timer timer;
    struct event tries[HOST_CHECK_TRIES];
    unsigned count; /* of the tries that were begun */
    struct task *waker;
};

/* `patience` is for all tries together. The address is copied. */
void host_check_start(struct host_check *check, struct net_context *net,
                      const struct address *address, uint64_t patience, struct task *waker);
void host_check_stop(struct host_check *check);

#endif
