/*
 * What services behind the cache make of a transaction: of the request for the origin, and of the
 * response for the client. Neither is stored.
 *
 *     transaction->outgoing = arena_alloc(arena, sizeof *transaction->outgoing);
 *     ... route and FETCH take head, url and authority from there ...
 *     adapt_chain_close(&transaction->outgoing->chain);
 *
 *     transaction->late = arena_zalloc(arena, sizeof *transaction->late);
 *     ... RESPMOD_POSTCACHE fills it; DELIVER sends head and body if it has `changed` ...
 *     late_end(transaction->late);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_LATE_H
#define RETORT_TRANSACTION_LATE_H

#include "adapt/chain.h"
#include "cache/body_source.h"
#include "transaction/pump.h"

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
    bool changed;
    struct http_head *head; /* the adapted one */
    struct pump pump;       /* from the last service */
    struct body *body;      /* to here; referenced */
};

/* Ends what is under way, and gives back what it holds. Harmless when repeated. */
void late_end(struct late *late);

#endif
