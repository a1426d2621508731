/*
 * What services behind the cache make of a transaction: of the request for the origin, and of the
 * response for the client.
 *
 *     transaction->reqmod_postcache = arena_alloc(arena, sizeof *transaction->reqmod_postcache);
 *     ... route and FETCH take head, url and authority from there ...
 *     adapt_chain_close(&transaction->reqmod_postcache->chain);
 *
 *     transaction->late = arena_zalloc(arena, sizeof *transaction->late);
 *     late_start(transaction->late, transaction, subject, late_head(transaction, subject), chosen,
 *                count);
 *     ... RESPMOD_POSTCACHE fills it; DELIVER sends head and body if it `answers` ...
 *     late_end(transaction->late);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_LATE_H
#define RETORT_TRANSACTION_LATE_H

#include "adapt/chain.h"
#include "cache/body_source.h"
#include "cache/object.h"
#include "transaction/pump.h"

struct transaction;

struct outgoing {
    struct adapt_chain chain;
    struct http_head head;
    struct url url; /* absolute, normalised */
    struct slice authority;
};

struct late {
    struct adapt_chain chain;
    struct adapt_message message;
    struct body_source source; /* the response's body, as it is stored or passes by */
    bool answers;              /* the client gets these: */
    struct http_head *head;
    struct pump pump;  /* from the last service */
    struct body *body; /* to here; referenced */
};

/* A copy of the head, as an origin would send it; `subject` NULL: of the response that is not
 * stored. */
struct http_head *late_head(struct transaction *transaction, const struct object *subject);
/* Has the chain begin on that response. */
void late_start(struct late *late, struct transaction *transaction, const struct object *subject,
                struct http_head *response, struct icap_service *const *chosen, unsigned count);
/* The ETag goes if it is still the one of what services were asked about, made weak or not: what
 * they made is not what that stands for. */
void late_forget_etag(struct http_head *head, struct slice old_etag);
/* Ends what is under way, and gives back what it holds. Harmless when repeated. */
void late_end(struct late *late);

#endif
