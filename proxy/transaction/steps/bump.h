/*
 * BUMP: opens a client's TLS connection. It makes sure who the origin is, shows the client a
 * certificate for that name, and lets HTTP serve the requests inside. If the connection is blocked,
 * or the origin is not trusted, the requests inside get a page that says why.
 *
 *     ASKING: another transaction verifies the same origin just now
 *     QUEUED: the parent proxies that lead to the origin have no connection free
 *     CHECKING: a connection to the origin verifies its certificate. This is left out when the
 *               origin was verified lately, so that answers from the cache need no connection.
 *     READING: the page of a service is read
 *     SHAKING: the TLS handshake with the client is under way
 *
 * A client that refuses the certificate, as apps with pinned certificates do, is noted. An origin
 * that asks for a client certificate is noted as well, and its connections are spliced, because
 * only the client has the key.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_BUMP_H
#define RETORT_TRANSACTION_STEPS_BUMP_H

#include "client/intercepted.h"
#include "intercept/leaf_cache.h"
#include "intercept/server_identity.h"
#include "net/dial.h"
#include "origin/slot.h"
#include "transaction/step.h"

enum bump_state { BUMP_ASKING, BUMP_QUEUED, BUMP_CHECKING, BUMP_READING, BUMP_SHAKING };

/* Written by bump.c. */
struct bump {
    struct transaction *transaction;
    enum bump_state state;
    struct server_identity_turn turn;     /* to verify the origin */
    const struct parent_settings *parent; /* that leads to the origin; NULL: none */
    struct origin_slot *slot;             /* at a parent proxy; NULL: none */
    struct tls_client *parent_tls;        /* counted; NULL: clear text with it */
    struct tls_client *origin;            /* counted; NULL: the origin is not asked */
    struct dial dial;                     /* to it */
    struct slice key;                     /* of the pool for connections to it */
    struct net_buffer *page;              /* of a service; NULL: none */
    struct connection *client;            /* owned */
    struct timer timer;
    bool timed_out;
    bool shakes;       /* counts among client.max_handshakes */
    bool refusable;    /* the certificate is one that browsers refuse */
    int64_t not_after; /* of the origin's certificate; 0: not known */
    struct intercepted_facts facts;
};

struct transaction;

/* Ends what is under way. It may be called again. */
void bump_end(struct transaction *transaction);

#endif
