/*
 * Dialling: from a host name and a port to an open connection, trying the addresses of the host.
 *
 *     dial_start(&dial, net,
 *                &(struct dial_target){.host = SLICE("example.com"), .port = 80,
 *                                      .egress = EGRESS_REMOTE, .timeout = connect_timeout},
 *                &waiter->task);
 *     ... the task runs ...
 *     if (dial.state == DIAL_DONE)   struct connection *c = dial_take(&dial, on_ready, owner);
 *     if (dial.state == DIAL_FAILED) dial.error says why ("connection refused"), dial.timed_out
 *     dial_cancel(&dial);            any time; closes what was not taken
 *
 * Addresses that net/egress.h or `permit` does not allow are skipped; dial.denied says that there
 * were no others. `permit` is asked about each address just before it is dialled, with the port, so
 * that a name can't lead to another address than the one that was judged.
 *
 * Several addresses race (RFC 8305, happy eyeballs). They are tried in the order of
 * net/address_order.h. When one has not answered after origin.attempt_delay, or has failed, the
 * next one is tried as well. The first TCP connection wins, and the others are closed at once. The
 * race does not go on to the TLS handshake, since a second handshake would cost the server more
 * than it could save, and use up a session that can be resumed once. When TLS fails, the addresses
 * that are left are tried. The addresses of one family that are known are tried at once if they are
 * IPv6, and after DIAL_RESOLUTION_DELAY if they are IPv4, while the name server is still being
 * asked for the other family.
 *
 * The timeout is for each address: for TCP, and again for the TLS handshake. When a server does not
 * send an intermediate certificate that is to be fetched, the handshake may take DIAL_FETCH_TIME
 * longer.
 *
 * Threads: the loop's thread only.
 */
#ifndef RETORT_NET_DIAL_H
#define RETORT_NET_DIAL_H

#include "net/connect_race.h"
#include "tls/client.h"

enum dial_state {
    DIAL_IDLE,
    DIAL_RESOLVING,
    DIAL_CONNECTING,
    DIAL_TUNNEL, /* a proxy is asked to open a tunnel */
    DIAL_HANDSHAKE,
    DIAL_FETCHING, /* the handshake waits for the certificate of an issuer */
    DIAL_DONE,
    DIAL_FAILED,
};

/* In milliseconds. */
enum {
    DIAL_FETCH_TIME = 10000, /* for all certificates of a handshake */
    DIAL_RESOLUTION_DELAY = 50
};

/* The proxy through which a connection is to go: host and port of the target are the proxy's, and
 * the TLS of the target is spoken with the server behind it. */
struct dial_proxy {
    struct slice head;      /* the whole CONNECT request; empty: there is no proxy */
    struct tls_client *tls; /* with the proxy itself; NULL: no TLS */
    uint64_t timeout;       /* milliseconds for the proxy's answer */
};

/* Where a connection is to go. `host` and `proxy.head` are read at the start only; the others
 * live as long as the dial. */
struct dial_target {
    struct slice host; /* a name or an IP address */
    uint16_t port;
    enum egress egress;
    uint64_t timeout;       /* milliseconds, for each address */
    struct tls_client *tls; /* NULL: no TLS */
    struct dial_proxy proxy;
    const struct address *from; /* the address that the connection comes from, which may be that of
                                    another machine (see net/privileges.h); NULL: the system chooses
                                    it, as it does for addresses of the other family */
    dial_permit_fn *permit;     /* NULL: `reach` alone decides */
    void *permit_arg;           /* lives as long as the dial */
    const struct address *client; /* who asks for the host, for the bound on look-ups; NULL: the
                                     proxy itself. Read at the start only. */
    struct slice preface; /* sent before anything else, TLS included; lives as long as the dial */
};

struct dial {
    unsigned magic;
#define DIAL_MAGIC 0xd1a1d1a1u
    enum dial_state state;
    struct net_context *net;
    struct tls_client *tls; /* NULL: none */
    struct tls_client *proxy_tls;
    uint64_t proxy_timeout;
    struct proxy_tunnel *tunnel; /* owned; NULL: the connection goes through no proxy */
    bool proxy_answered;         /* the proxy works; a failure after that is of what it leads to */
    bool tunnel_open;
    struct slice preface;
    uint64_t timeout;
    struct timer timer;
    uint64_t fetch_until;   /* when the fetches of certificates must be done; 0: none was needed */
    struct waiter *fetched; /* in DIAL_FETCHING */
    struct task fetched_task;
    struct connection *connection;
    struct address address; /* the one that answered, or was tried last */
    const char *error;
    bool timed_out, denied;
    bool reached;    /* a TCP connection was made; a failure after that is one of TLS */
    bool unverified; /* the failure: the server's certificate was not accepted */
    struct task *waker;
    /* dial_start does not clear what follows. */
    struct resolver_query query;
    struct connect_race race;
    char said[TLS_ERROR_MAX];
};

void dial_start(struct dial *dial, struct net_context *net, const struct dial_target *target,
                struct task *waker);
/* Limits the time for the TCP connection to `patience` milliseconds. Call it directly after the
 * start. */
void dial_hurry(struct dial *dial, uint64_t patience);
/* Only in DIAL_DONE; the connection is writable, and its `remote` is the address. */
struct connection *dial_take(struct dial *dial, connection_ready_fn *on_ready, void *owner);
void dial_cancel(struct dial *dial);

#endif
