/*
 * What access rules have decided about a transaction, and who its client is, for the core. The part access has the
 * rules; it makes a struct access where there are any, or where others ask for the user or the address of the host.
 *
 *     if (access_is_tunnel(transaction)) ...              neither the cache nor a service takes part
 *     entry->access = access_rule_name(transaction);
 *
 * Rules also decide about what is about to leave. Whoever connects lets each address be judged before, because a
 * name may lead elsewhere by then:
 *
 *     target.permit = access_permit(transaction);         NULL: no rule asks for the address
 *     target.permit_arg = transaction;
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_ACCESS_H
#define RETORT_TRANSACTION_ACCESS_H

#include "net/dial.h"
#include "transaction/transaction.h"

struct url_class;

/* What the client is told about a request that is not let in. */
struct access_refusal {
    unsigned status;
    const char *reason;
    const char *page;      /* error_page.name; NULL: class and status choose it */
    struct slice location; /* a redirection in place of the page; empty: none */
};

/* A refusal by access is none of the proxy's errors. */
static inline bool access_refusal_is_denial(const struct access_refusal *refusal) {
    return refusal->status < 500;
}

/* Who decides further. */
struct access_class {
    /* Judges an address that the request is about to be sent to; NULL: no rule asks for it. Its argument is the
     * transaction. */
    dial_permit_fn *permit;
    /* About the request that services behind the cache have made for the origin. NULL: it may go there; else a
     * reason for people. */
    const char *(*denial)(struct transaction *transaction);
    /* What becomes of a connection whose TLS asks for `sni`. False: it is denied, and `refusal` says what the
     * client is told. */
    bool (*allows_name)(struct transaction *transaction, struct slice sni);
};

/* Written by ../../parts/access/state.c. */
struct access {
    const struct access_class *class;
    bool tunnel;                    /* neither the cache nor a service takes part */
    const struct url_class *rule;   /* of the section that decided; NULL: none did */
    const struct url_class *logged; /* of the first with log_only that would have decided */
    /* Which INTERCEPT shows inside of the connection; NULL: the request is let in, or the client has its answer. */
    const struct access_refusal *refusal;
    /* Proves the proxy to the client, who has proved himself (RFC 4559 section 4.1), in the response; empty: none. */
    struct slice answer;
};

static inline bool access_is_tunnel(const struct transaction *transaction) {
    return transaction->access != NULL && transaction->access->tunnel;
}
static inline dial_permit_fn *access_permit(const struct transaction *transaction) {
    return transaction->access != NULL ? transaction->access->class->permit : NULL;
}
/* The class of the section that decided; empty: none did. Of a page inside of a connection, the one that decided
 * about the connection. */
struct slice access_rule_name(const struct transaction *transaction);

/* The client is proven to be this user. The caller's reference becomes the transaction's. */
void access_set_identity(struct transaction *transaction, struct identity **identityp);
/* Inside an intercepted connection: the user of its CONNECT is that of each request, also of one that is answered
 * before ACCESS. For RECEIVE. */
void access_take_connection(struct transaction *transaction);

/* The answer is for this client and this response, so it is no part of a head that is stored, adapted or shared:
 * whoever sends the final response adds it last. The field line; empty: there is none, or the response asks for
 * credentials itself. */
struct slice access_answer_line(struct transaction *transaction, unsigned status);
/* Into the head with which a tunnel begins. */
void access_answer_tunnel(const struct transaction *transaction, struct http_head *head);
/* The field of the request that has the credentials: Proxy-Authorization on forward listeners, Authorization on
 * reverse ones. */
static inline enum http_name access_credentials_field(const struct transaction *transaction) {
    return transaction->exchange->listen->mode == LISTEN_REVERSE ? HTTP_AUTHORIZATION
                                                                 : HTTP_PROXY_AUTHORIZATION;
}

#endif
