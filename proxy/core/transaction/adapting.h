/*
 * Adapting: what services do with a transaction, for the core. The part adapt asks them. It has a struct adapting for
 * each transaction that a service may want, in which the steps of the core read what has become of its messages. For
 * example, in STORE:
 *
 *     if (transaction->adapting != NULL && transaction->adapting->unable) ...
 *
 * What services behind the cache have made of the request for the origin is transaction->outgoing.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_ADAPTING_H
#define RETORT_TRANSACTION_ADAPTING_H

#include "http/head.h"
#include "http/url.h"
#include "transaction/asked.h"
#include "transaction/step.h"

#include <stdbool.h>

struct adapt_chain;
struct adapter;
struct body;
struct object;
struct object_provenance;
struct transaction;

struct adapting_class {
    /* What a chain has come to (transaction_chain): the services that have been asked, which are at most ASKED_MAX. Returns
     * how many. */
    unsigned (*tell)(const struct adapt_chain *chain, struct asked_service *list);
    /* The name of the one that is asked now, or of the one that has failed; NULL: none. */
    const char *(*awaited)(const struct adapt_chain *chain);
    const char *(*failed)(const struct adapt_chain *chain);
    /* While settings->asks_at[ADAPT_RESPMOD_PRECACHE]: may services before the cache want the response, whatever it will turn
     * out to be? */
    bool (*wants_response)(struct transaction *transaction);
    /* While settings->asks_at[ADAPT_RESPMOD_POSTCACHE]: likewise, services behind the cache. */
    bool (*wants_reply)(struct transaction *transaction);
    /* While services are asked between the cache and the origin: does it depend on who asks which of them are, for this
     * response? */
    bool (*asks_who)(struct transaction *transaction, const struct http_head *response);
    /* For LOOKUP: has a service changed that adapted this response before it was stored? */
    bool (*is_outdated)(struct transaction *transaction, const struct object *object);
    /* For STORE, where services were asked about the response: which it has passed. */
    void (*note_seen)(const struct transaction *transaction, struct object_provenance *provenance);
};

/* Results of services behind the cache are remembered (parts/variants). */
struct variant_class {
    /* For LOOKUP, in place of cache_lookup, while a service wants that: the stored response, and in adapting->variant what
     * services have made of it. */
    struct object *(*look_up)(struct transaction *transaction);
    /* The variant that was found is not for this client, or not valid any more. */
    void (*forget)(struct transaction *transaction);
    /* Takes the services that have seen the response out of those that are to see it. */
    unsigned (*leave_out)(const struct transaction *transaction, struct adapter **chosen,
                          unsigned count);
    /* Stores what has arrived of a variant. */
    void (*settle)(struct transaction *transaction);
    /* For LOG, as in patience_class. */
    bool (*goes_on)(struct transaction *transaction);
};

/* Clients are shown something while services think (parts/patience). For RESPMOD: */
struct patience_class {
    /* The services are asked about the response. */
    void (*begin)(struct transaction *transaction, struct adapter *const *services, unsigned count);
    /* They have not decided. STEP_WAIT: the client waits; else it gets a page. */
    enum step (*wait)(struct transaction *transaction);
    /* For LOG, when the client has gone: goes on with what is still wanted. True: there is more to do, and the
     * transaction's task runs then. */
    bool (*goes_on)(struct transaction *transaction);
    /* May be called again. */
    void (*end)(struct transaction *transaction);
};

/* Written by ../../parts/adapt/ and ../../parts/patience/ and ../../parts/variants/. */
struct adapting {
    const struct adapting_class *class;
    const struct variant_class *variants;  /* NULL: services make no variant of this response */
    const struct patience_class *patience; /* NULL: the client waits, whatever it takes */
    bool request_changed;                  /* by services before the cache */
    bool asked;                            /* about the response, before it is stored */
    /* A service that matters for the stored response could not do its work. Those that adapted the response matter,
     * and those behind the cache that adapted the request: the key under which the response is stored does not show what
     * they did. A service before the cache does not matter: it makes the request that the response is stored for. */
    bool unable;
    bool missed;  /* the response has not been to such a service */
    bool for_one; /* a service had no chance to adapt it, or left it alone for this client */
    /* What services behind the cache make of the stored response for all clients; referenced. NULL: nothing. */
    struct object *variant;
    /* What they make of the response for this client; both NULL: it goes out as it is. The body alone: it has passed
     * through the services. */
    struct http_head *head;
    struct body *body;
};

/* The request for the origin, where services behind the cache have been shown it. The client's stays as it is. Written by
 * ../../parts/adapt/. */
struct outgoing {
    struct http_head head;
    struct url url; /* absolute, normalised */
    struct slice url_text;
    struct slice authority;
    bool changed; /* by a service */
    bool by_who;  /* which services are asked depends on who asks */
};

/* May services behind the cache want the response, whatever it will turn out to be? */
bool adapting_behind_cache(struct transaction *transaction);
/* The variant that was found, if any, is not for this client, or not valid any more. */
void adapting_forget_variant(struct transaction *transaction);

#endif
