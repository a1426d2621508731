/*
 * BUMP: opens a client's TLS connection. It makes sure who the origin is, shows the client a
 * certificate for that name, and lets HTTP serve the requests inside. If the connection is blocked,
 * or the origin is not trusted, the requests inside get a page that says why.
 *
 *     PROVING: it is found out who the origin is (intercept/origin_proof.h). An origin that was
 *              verified lately is not asked, so that answers from the cache need no connection.
 *     READING: the page of a service is read
 *     SHAKING: the TLS handshake with the client is under way
 *
 * A client that refuses the certificate, as apps with pinned certificates do, is noted. An origin
 * that asks for a client certificate is noted as well, and its connections are spliced, because
 * only the client has the key.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_INTERCEPT_BUMP_H
#define RETORT_INTERCEPT_BUMP_H

#include "client/intercepted.h"
#include "intercept/leaf_cache.h"
#include "intercept/origin_proof.h"

enum bump_state { BUMP_PROVING, BUMP_READING, BUMP_SHAKING };

/* Written by bump.c. */
struct bump {
    struct transaction *transaction;
    enum bump_state state;
    struct origin_proof proof; /* who the origin is; zero: nobody asks */
    struct net_buffer *page;   /* of a service; NULL: none */
    struct connection *client; /* owned */
    struct timer timer;
    bool timed_out;
    bool shakes; /* counts among client.max_handshakes */
    struct intercepted_facts facts;
};

/* What requests inside a connection that was opened need of this part. */
extern const struct bumped_class opened_class;

#endif
