/*
 * The adaptation of a response behind the cache: the chain of services reads the response's body
 * from where it is stored, or as it passes by.
 *
 *     struct postcache *postcache = arena_zalloc(arena, sizeof *postcache);
 *     struct http_head *head = postcache_head(transaction, object);
 *     postcache_start(postcache, transaction, object, head, services, count);
 *     ... the transaction's task runs when postcache->chain.state has changed ...
 *     postcache_end(postcache);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_ADAPT_POSTCACHE_H
#define RETORT_ADAPT_POSTCACHE_H

#include "adapt/chain.h"
#include "cache/body_reader.h"
#include "cache/object.h"
#include "transaction/pump.h"

struct transaction;

struct postcache {
    struct adapt_chain chain;
    struct adapt_message message;
    struct body_source source; /* the response's body, as it is stored or passes by */
    struct pump pump;          /* from the last service */
    struct body *body;         /* to here; referenced */
};

/* A copy of the head, as an origin would send it; `subject` NULL: of the response that is not
 * stored. */
struct http_head *postcache_head(struct transaction *transaction, const struct object *subject);
/* Starts the chain on that response. */
void postcache_start(struct postcache *postcache, struct transaction *transaction,
                     const struct object *subject, struct http_head *response,
                     struct adapter *const *chosen, unsigned count);
/* Removes the ETag if it is still the one of the response that services were asked about, made weak
 * or not: it does not stand for what they made. */
void postcache_forget_etag(struct http_head *head, struct slice old_etag);
/* Ends what is under way, and gives back what it holds. It may be called again. */
void postcache_end(struct postcache *postcache);

#endif
