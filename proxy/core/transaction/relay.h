/*
 * A relay: bytes both ways between a client and an origin, until both have finished (RFC 9110
 * §9.3.6).
 *
 *     struct relay *relay = relay_new(net, sides, NULL, paces, idle, false, &task);
 *     ... the task runs when relay->over ...
 *     relay_free(&relay);
 *
 * Each direction has one buffer; it is read when it is empty and written when it is not. The end of
 * one direction is passed on as the end of that direction. A client that is lost ends both, whatever
 * the origin does. An origin that is lost behind the end of its direction leaves the client what it
 * has sent: what the client still sends is dropped, for a while at most. So does an origin of this
 * process that closes its socket before it has read all: that looks like a reset, and is an end.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_RELAY_H
#define RETORT_TRANSACTION_RELAY_H

#include "client/pace.h"
#include "net/duplex.h"

struct relay_way {
    struct net_buffer *buffer;
    bool ended; /* the reading side has finished, and the writing side has been told */
};

struct relay {
    unsigned magic;
#define RELAY_MAGIC 0x70be1000u
    struct net_context *net;
    struct duplex *sides[2];  /* client, origin; owned */
    struct relay_way ways[2]; /* from client, from origin */
    struct pace *paces[2];    /* of the ways; NULL: as fast as it goes */
    struct timer timer;
    struct task task; /* a side is ready, or what had to give others their turn goes on */
    uint64_t idle_timeout;
    uint64_t bytes[2];
    bool local;       /* the origin is of this process */
    bool origin_deaf; /* it reads no more; what the client sends is dropped */
    bool origin_gone; /* likewise, and it sends no more */
    bool over;
    struct task *waker;
};

/* Takes both sides, and the bytes that were read from the client before (NULL: none). paces: from
 * client, from origin; they are ended behind the relay. `local`: the origin is of this process. */
struct relay *relay_new(struct net_context *net, struct duplex *const sides[2],
                        struct net_buffer *ahead, struct pace *const paces[2],
                        uint64_t idle_timeout, bool local, struct task *waker);
void relay_free(struct relay **relayp);

#endif
