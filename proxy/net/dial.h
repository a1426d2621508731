/*
 * Dialling: from a host name and a port to an open connection, trying each address in turn.
 *
 *     dial_start(&dial, net, SLICE("example.com"), 80, REACH_REMOTE, connect_timeout,
 *                &waiter->task);
 *     ... the task runs ...
 *     if (dial.state == DIAL_DONE)   struct connection *c = dial_take(&dial, on_ready, owner);
 *     if (dial.state == DIAL_FAILED) dial.error says why ("connection refused"), dial.timed_out
 *     dial_cancel(&dial);            any time; closes what was not taken
 *
 * Addresses out of reach (net/reach.h) are skipped; dial.denied says that there were no others. The
 * timeout is for each address, and includes the handshake of TLS. Threads: the loop's.
 */
#ifndef RETORT_NET_DIAL_H
#define RETORT_NET_DIAL_H

#include "net/connection.h"
#include "net/reach.h"
#include "net/resolver.h"

enum dial_state {
    DIAL_IDLE,
    DIAL_RESOLVING,
    DIAL_CONNECTING,
    DIAL_HANDSHAKE,
    DIAL_DONE,
    DIAL_FAILED,
};

struct dial {
    unsigned magic;
#define DIAL_MAGIC 0xd1a1d1a1u
    enum dial_state state;
    struct net_context *net;
    struct resolver_query query;
    struct tls_client *tls; /* NULL: none */
    uint16_t port;
    enum reach reach;
    uint64_t timeout;
    uint64_t patience; /* with the TCP connection; at most `timeout` */
    struct timer timer;
    unsigned next; /* address to try */
    bool tried;    /* to connect to one */
    struct connection *connection;
    struct address address; /* the one that answered, or was tried last */
    const char *error;
    bool timed_out, denied;
    bool reached; /* there was a TCP connection: what failed is TLS */
    struct task *waker;
};

void dial_start(struct dial *dial, struct net_context *net, struct slice host, uint16_t port,
                enum reach reach, uint64_t timeout, struct task *waker);
/* The same for a connection that speaks TLS to what the configuration names; tls NULL: one that
 * does not. */
void dial_start_tls(struct dial *dial, struct net_context *net, struct slice host, uint16_t port,
                    uint64_t timeout, struct tls_client *tls, struct task *waker);
/* Right after the start: so long may a TCP connection take that has not come about yet. */
void dial_hurry(struct dial *dial, uint64_t patience);
/* Only in DIAL_DONE; the connection is writable. */
struct connection *dial_take(struct dial *dial, connection_ready_fn *on_ready, void *owner);
void dial_cancel(struct dial *dial);

#endif
