/*
 * A transaction: one request from its head to its line in the access log.
 *
 *     RECEIVE -> ADMIT -> ACCESS -> LIMIT -> PURGE -> COLLECT -> DESTINATION -> INTERCEPT -> REWRITE
 *             -> REQMOD -> RECHECK -> LOOKUP -> REQMOD_POSTCACHE -> BUMP -> FETCH -> RESPMOD -> STORE
 *             -> TUNNEL -> VARIANT -> RESPMOD_POSTCACHE -> DELIVER -> LOG
 *
 * Each step is a row of data in a file of its own (step.h, steps/). The settings list those that they
 * need. A step does what it can and says where to go: to the next one that is wanted, further
 * ahead, or nowhere (STEP_WAIT): then transaction_task runs it again when something has happened.
 * Callbacks of input and output store a result and defer the task. A hit goes from LOOKUP to
 * STEP_ANSWER, where services may want to see it, and on to DELIVER. An error page goes to DELIVER
 * from anywhere. An answer that a service made goes from REQMOD to STORE.
 *
 *     transaction_start(host, exchange);          from clients.on_request
 *
 * Memory: one arena a transaction, recycled with it. Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_TRANSACTION_H
#define RETORT_TRANSACTION_TRANSACTION_H

#include "client/exchange.h"
#include "http/trace_context.h"
#include "part.h"
#include "transaction/access_log.h"
#include "transaction/adapting.h"
#include "transaction/caching.h"
#include "transaction/destination.h"
#include "transaction/disclosed_identity.h"
#include "transaction/early_tunnel.h"
#include "transaction/limiting.h"
#include "transaction/outcome.h"
#include "transaction/request.h"
#include "transaction/response.h"
#include "transaction/snapshot.h"
#include "transaction/step.h"
#include "transaction/steps/deliver.h"
#include "transaction/steps/fetch.h"
#include "transaction/steps/lookup.h"
#include "transaction/steps/store.h"
#include "transaction/steps/tunnel.h"
#include "transaction/watcher.h"

struct vouching;

/* Counts what becomes of requests: the part admin (admin/request_counts.h). */
struct request_counter {
    /* A transaction that has ended, with its exchange. `took`: microseconds. */
    void (*add)(struct request_counter *counter, const struct transaction *transaction,
                uint64_t took);
};

/* What all transactions of a worker share; the worker's. */
struct transaction_host {
    struct net_context *net;
    struct mailbox *mailbox;
    struct cache *cache;
    struct second_level *second_level; /* NULL: there is none */
    const struct vouching *vouching;   /* for what is stored */
    struct shared_fetches *shared_fetches;
    struct origin_hosts *origin_hosts;
    struct removal_teller *removals; /* NULL: no process takes over (invalidate.h) */
    unsigned index;                  /* of the worker */
    struct clients *clients;
    struct client_total *client_total;
    struct snapshot *snapshot;             /* the present one */
    const struct adapting_class *adapting; /* NULL: no service is ever asked */
    const struct variant_class *variants;  /* NULL: what services make is not remembered */
    const struct patience_class *patience; /* NULL: clients wait for services */
    struct origin_pool *origins;
    struct origin_securities *origin_securities;
    struct access_logs *logs;
    void *parts[PART_COUNT];           /* what each part keeps for this worker (part.h) */
    struct entry_watcher *watcher;     /* NULL: nobody watches (transaction/watcher.h) */
    struct step_watcher *step_watcher; /* likewise */
    bool watched;                      /* transactions that begin may be watched */
    struct list_link active;
    struct transaction *free_list;
    unsigned free_count;
    uint64_t id_prefix, id_next;
    struct request_counter *counter; /* NULL: nobody counts */
    void (*on_end)(void *arg);       /* a transaction has ended: a draining worker counts */
    void *on_end_arg;
};

struct access;
struct removal_notice;
struct destination;
struct client_total;
struct clients;
struct identity;
struct spans;

struct transaction {
    unsigned magic;
#define TRANSACTION_MAGIC 0x74a450c7u
    enum step step;
    uint32_t begun; /* a bit for each step of the list that has begun something or waited */
    struct step_times *times; /* NULL: nobody looks at its steps (journal.h) */
    struct transaction_host *host;
    struct net_context *net;
    struct arena arena;
    struct list_link link;
    struct transaction *next_free;
    struct task task;
    struct snapshot *snapshot;       /* referenced */
    const struct settings *settings; /* the snapshot's */
    struct exchange *exchange;       /* NULL after LOG has let the client go */
    uint64_t number;
    char id[SLICE_HEX + 1]; /* see transaction_id */

    /* One struct a phase, or for what passes from one phase to the next. Each is declared, and
     * written, by the file that it is named after: others read it, and call that file's functions
     * (tests/check-writers.sh). What a hit touches stands first. */
    struct outcome outcome;
    struct request request;
    struct caching caching;
    struct lookup lookup;
    struct delivery delivery;
    struct disclosed_identity disclosed_identity;

    void *parts[PART_COUNT];   /* what each part keeps for this transaction (part.h) */
    struct spans *spans;       /* NULL: there is no tracing section */
    struct access *access;     /* NULL: there are no rules of access */
    struct limiting *limiting; /* NULL: nothing bounds what the client may use */
    struct adapting *adapting; /* NULL: no service wants it so far */
    struct outgoing *outgoing; /* NULL: the origin gets the request as it is */
    struct identity *identity; /* who the client is, once proven; NULL: nobody (access.h) */
    struct removal_notice
        *told; /* owned by invalidate.c; NULL: nobody has to be told of a removal */
    struct destination *destination;   /* NULL: the client named the server itself */
    struct early_tunnel *early_tunnel; /* NULL: nobody looks into this CONNECT */

    struct fetch fetch;
    struct response response;
    struct storing storing;
    struct tunnel tunnel;
};

void transaction_start(struct transaction_host *host, struct exchange *exchange);
/* Called once the loop of the worker is there. */
void transaction_host_init(struct transaction_host *host);
/* Call it when the settings have changed and when a step_watcher begins to want steps: decides whether somebody
 * looks at the steps of transactions. It is called for itself when the watcher wants no more. */
void transaction_host_watch(struct transaction_host *host);
void transaction_host_release(struct transaction_host *host);
/* Ends all transactions that are under way, when a drain has taken too long. */
void transaction_abort_all(struct transaction_host *host);

/* Begins for a step ahead what that step ends. */
static inline void transaction_begin(struct transaction *transaction, enum step step) {
    transaction->begun |= UINT32_C(1) << transaction->settings->steps->at[step];
}
/* The client goes: all that reads from the exchange ends. For LOG, where something has begun. */
void transaction_let_go(struct transaction *transaction);

/* The number as text. The first call writes it. */
const char *transaction_id(struct transaction *transaction);

/* The chains of services that the transaction went through, in their order. Returns how many. */
unsigned transaction_chains(const struct transaction *transaction,
                            const struct adapt_chain *chains[STEP_CHAINS]);

/* The services that the step has asked. Returns how many. */
unsigned transaction_asked(const struct transaction *transaction, enum step step,
                           struct asked_service asked[ASKED_MAX]);
/* Likewise, as the part knows them that asks; NULL: none. */
const struct adapt_chain *transaction_chain(const struct transaction *transaction, enum step step);

/* The stored response that the answer comes from: one that was found, or that is being stored now;
 * NULL: none is. */
static inline struct object *transaction_object(const struct transaction *transaction) {
    return transaction->storing.object != NULL ? transaction->storing.object
                                               : transaction->lookup.object;
}

/* The object that goes to the client: the stored response, or a variant of it; NULL: no response is
 * stored. */
static inline struct object *transaction_shown(const struct transaction *transaction) {
    return transaction->adapting != NULL && transaction->adapting->variant != NULL
               ? transaction->adapting->variant
               : transaction_object(transaction);
}

/* Does nothing prove that an answer is that of the URL's host, so that it may go to this client only
 * (destination.h)? */
static inline bool transaction_is_unproven(const struct transaction *transaction) {
    return (transaction->destination != NULL || exchange_is_intercepted(transaction->exchange)) &&
           destination_is_unproven(transaction);
}

#endif
