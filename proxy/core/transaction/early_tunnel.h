/*
 * An early tunnel: a CONNECT that a part has answered before anybody connects to the server, because clients say no more
 * before that. The part has the client's side, and reads what the client sends first.
 *
 *     if (transaction->early_tunnel != NULL)
 *         return transaction->early_tunnel->class->fail(transaction, 403, reason, sentence, NULL);
 *
 * From here on nothing can be answered in clear text any more. The part shows a page inside of TLS, or cuts the
 * connection.
 *
 * Threads: the worker's. Memory: the part's.
 */
#ifndef RETORT_TRANSACTION_EARLY_TUNNEL_H
#define RETORT_TRANSACTION_EARLY_TUNNEL_H

#include "client/intercepted.h"
#include "event/source.h"
#include "http/head.h"
#include "net/duplex.h"
#include "transaction/step.h"

struct early_tunnel_class {
    /* The CONNECT fails. `reason` is for the log, `sentence` for a page, `name` that of an error_page section, or
     * NULL. */
    enum step (*fail)(struct transaction *transaction, unsigned status, const char *reason,
                      struct slice sentence, const char *name);
    /* A service has changed the CONNECT. */
    void (*take_request)(struct transaction *transaction, const struct http_head *head);
    /* A service answers the CONNECT itself. Takes the body. */
    enum step (*take_answer)(struct transaction *transaction, struct http_head *answer,
                             struct source **bodyp);
    /* That service is about to end. */
    void (*close_answer)(struct transaction *transaction);
    /* Gives the client's side, and what was read from it, to the caller. */
    struct duplex *(*take_client)(struct transaction *transaction, struct net_buffer **bytesp);
    /* For the log: what becomes of the connection, "splice" for example, and what requests inside will know of it.
     * NULL: nobody opens it. */
    const struct intercepted_facts *(*describe)(const struct transaction *transaction,
                                                const char **action);
};

struct early_tunnel {
    const struct early_tunnel_class *class;
    struct slice sni; /* the name that the client's TLS asks for; empty: none that may be used */
};

/* The name that the TLS in a CONNECT asks for; empty: none that may be used, or nobody has looked. */
static inline struct slice early_tunnel_sni(const struct early_tunnel *tunnel) {
    return tunnel != NULL ? tunnel->sni : slice_make("", 0);
}

#endif
