/*
 * An adapted variant: what services behind the cache make of a stored response for all clients. It
 * is stored beside that response, and goes to every client whose request passes the same services,
 * until the tag of one of them changes (adapt/chain_tags.h). Then it is made again.
 *
 *     object = host->variants->look_up(transaction);                   LOOKUP
 *     if (!adapted_variant_join(transaction))                          VARIANT, where there is none
 *         adapted_variant_ask(transaction, response, services, count);
 *     adapted_variant_take_answer(transaction);
 *     shown = transaction_shown(transaction);                          DELIVER
 *     adapting->variants->settle(transaction);                         LOG, until it is stored
 *     adapted_variant_end(transaction);
 *
 * The stored response stays the transaction's object: it tells how fresh the variant is, and the
 * origin is asked about it. If several requests want the same variant, one of them has it made, and
 * the others wait.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_VARIANTS_ADAPTED_VARIANT_H
#define RETORT_VARIANTS_ADAPTED_VARIANT_H

#include "adapt/adaptation.h"
#include "adapt/chain_tags.h"
#include "adapt/postcache.h"
#include "cache/shared_fetch.h"
#include "cache/store.h"
#include "transaction/collapse.h"

enum adapted_variant_state {
    ADAPTED_VARIANT_NONE,
    ADAPTED_VARIANT_FOLLOWS, /* another one's making of it */
    ADAPTED_VARIANT_ASKS,    /* the services */
    ADAPTED_VARIANT_STORES,  /* waits for what will be stored */
    ADAPTED_VARIANT_OVER,
};

/* Written by adapted_variant.c. */
struct adapted_variant {
    enum adapted_variant_state state;
    struct adapter *services[ADAPT_CHAIN_MAX]; /* that may want it, whatever it is */
    unsigned count;
    uint32_t chain; /* these services; see struct object_provenance */
    bool only;      /* lookup.object is the variant, there is nothing else */
    bool old;       /* there was one, under other tags */
    bool applied;   /* the response has been through the services */
    bool others;    /* services may want it that are not remembered */
    struct chain_tags mark;
    struct cache_moment since;
    struct postcache *postcache; /* NULL: nobody was asked */
    bool keep;                   /* what is made may be stored */
    struct object *of;           /* what it is made of; referenced */
    struct collapse collapse;    /* of those who want it made */
    unsigned rounds;
};

extern const struct variant_class adapted_variant_class;

/* NULL: no service that is remembered may want the response. */
static inline struct adapted_variant *variant_of(const struct transaction *transaction) {
    return transaction->parts[PART_VARIANTS];
}
/* Is the service one of those that are remembered? */
bool adapted_variant_includes(const struct adapted_variant *variant, const struct adapter *service);
/* Brings the variant that was found up to date, after the origin has confirmed what it was made of.
 * False: it can't be, and is dropped. */
bool adapted_variant_renew(struct transaction *transaction);
/* Waits for another request that has the variant made; false: this one has to do so. */
bool adapted_variant_join(struct transaction *transaction);
/* Has the other request made the variant, or taken too long? Then the variant has been looked up
 * again. */
bool adapted_variant_has_followed(struct transaction *transaction);
/* Starts these services on the response. */
void adapted_variant_ask(struct transaction *transaction, struct http_head *response,
                         struct adapter *const *chosen, unsigned count);
/* The services have answered: the variant is there. */
void adapted_variant_take_answer(struct transaction *transaction);
/* The response that the client is to get has passed the services. */
void adapted_variant_set_applied(struct transaction *transaction);
/* Nothing more is stored. Requests that wait for the variant are told this outcome. */
void adapted_variant_finish(struct transaction *transaction, enum shared_fetch_outcome outcome);
/* The client is gone: a variant that will be stored is made to its end, and all else ends. */
void adapted_variant_let_client_go(struct transaction *transaction);
/* Ends what is under way. Requests that wait for the variant ask for themselves. It may be called
 * again. */
void adapted_variant_end(struct transaction *transaction);

#endif
