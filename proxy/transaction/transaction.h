/*
 * A transaction: one request from its head to its line in the access log.
 *
 *     RECEIVE -> ADMIT -> ACCESS -> LIMIT -> DESTINATION -> INTERCEPT -> REWRITE -> REQMOD -> RECHECK
 *             -> LOOKUP -> REQMOD_POSTCACHE -> BUMP -> FETCH -> RESPMOD -> STORE
 *             -> VARIANT -> RESPMOD_POSTCACHE -> TUNNEL -> DELIVER -> LOG
 *
 * The steps stand in one table (transaction.c), each in a file of its own (steps/). A step does
 * what it can and returns the next one, which lies ahead, or STEP_WAIT: then transaction_task runs
 * it again when something has happened. No step is called from inside a step: callbacks of input
 * and output store a result and defer the task. A hit jumps from LOOKUP to DELIVER; if services
 * must see it, it goes through VARIANT and RESPMOD_POSTCACHE. An error page jumps to DELIVER from
 * anywhere. An answer that a service made jumps from REQMOD to STORE.
 *
 *     transaction_start(host, exchange);          from clients.on_request
 *
 * Memory: one arena a transaction, recycled with it. Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_TRANSACTION_H
#define RETORT_TRANSACTION_TRANSACTION_H

#include "adapt/chain.h"
#include "client/exchange.h"
#include "spans/trace_context.h"
#include "transaction/access_log.h"
#include "transaction/caching.h"
#include "transaction/disclosure.h"
#include "transaction/outcome.h"
#include "transaction/request.h"
#include "transaction/response.h"
#include "transaction/step.h"
#include "transaction/steps/deliver.h"
#include "transaction/steps/destination.h"
#include "transaction/steps/fetch.h"
#include "transaction/steps/lookup.h"
#include "transaction/steps/store.h"
#include "transaction/steps/tunnel.h"
#include "transaction/watcher.h"

struct request_counts;
struct waiting_downloads;

/* What all transactions of a worker share; the worker's. */
struct transaction_host {
    struct net_context *net;
    struct mailbox *mailbox;
    struct cache *cache;
    struct disk *disk; /* NULL: there is none */
    struct shared_fetches *shared_fetches;
    struct origin_hosts *origin_hosts;
    struct waiting_downloads *waiting_downloads;
    struct interception *interception;
    struct authentication *authentication;
    struct purge_orders *purge_orders;
    unsigned index; /* of the worker */
    struct client_total *client_total;
    /* Toward clients of intercepted connections; without HTTP/2, where the listener says so. */
    struct tls_server *inside, *inside_http1;
    struct timer waiting_downloads_timer; /* when the next one expires */
    struct adapt_set *adapt;              /* the current one */
    struct origin_connections *origins;
    struct origin_securities *origin_securities;
    struct access_logs *logs;
    struct entry_watcher *watcher;    /* NULL: nobody watches (transaction/watcher.h) */
    struct entry_watcher service_log; /* service_log.c's */
    struct inspections *inspections;  /* NULL: there is no admin plane */
    unsigned inspected_count;         /* transactions under way that are inspected */
    bool watched;                     /* transactions that begin may be watched */
    struct list_link active;
    struct transaction *free_list;
    unsigned free_count;
    uint64_t id_prefix, id_next;
    struct span_exporter *span_exporter;
    struct trace_ids trace_ids;
    struct request_counts *request_counts;
    void (*on_end)(void *arg); /* a transaction has ended: a draining worker counts */
    void *on_end_arg;
};

struct access;
struct adapted_variant;
struct authentication;
struct purge_order;
struct purge_orders;
struct destination;
struct bump;
struct client_total;
struct identity;
struct inspecting;
struct inspections;
struct limiting;
struct intercept;
struct interception;
struct tls_server;
struct reqmod;
struct reqmod_postcache;
struct respmod;
struct respmod_postcache;
struct span_exporter;
struct spans;
struct waiting_page;

struct transaction {
    unsigned magic;
#define TRANSACTION_MAGIC 0x74a450c7u
    enum step step;
    bool begun;       /* more than a hit has: see end_fetch */
    bool wait_traced; /* see trace_step */
    bool watched;     /* each step is looked at: for the log, spans or an inspection */
    struct transaction_host *host;
    struct net_context *net;
    struct arena arena;
    struct list_link link;
    struct transaction *next_free;
    struct task task;
    struct adapt_set *adapt;         /* referenced */
    const struct settings *settings; /* adapt's */
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
    struct disclosure disclosure;

    struct spans *spans;            /* NULL: there is no tracing section */
    struct access *access;          /* NULL: there are no access sections */
    struct limiting *limiting;      /* NULL: no limit section matches */
    struct adapt_opt_out *opt_outs; /* modules of services that want to hear no more of it */
    struct identity *identity;      /* who the client is, once proven; NULL: nobody (access.h) */
    struct purge_order *purge;      /* owned by steps/purge.c; NULL: the request is no order */
    struct purge_order *told; /* owned by invalidate.c; NULL: nobody has to be told of a removal */
    struct destination *destination; /* NULL: the client named the server itself */
    /* NULL for all but a CONNECT that may be intercepted. */
    struct intercept *intercept;
    struct bump *bump;

    /* NULL where no service is asked. */
    struct reqmod *reqmod;
    struct reqmod_postcache *reqmod_postcache;
    struct respmod *respmod;
    struct adapted_variant *variant;
    struct respmod_postcache *respmod_postcache;
    struct waiting_page *waiting_page; /* NULL: the client needs none */

    struct inspecting *inspecting; /* owned by inspect.c; NULL: nobody inspects it */
    struct fetch fetch;
    struct response response;
    struct storing storing;
    struct tunnel tunnel;
};

void transaction_start(struct transaction_host *host, struct exchange *exchange);
/* Called once the loop of the worker is there. */
void transaction_host_init(struct transaction_host *host);
/* Call it when the settings have changed and when an inspection begins: decides whether somebody looks
 * at the steps of transactions. It is called for itself when no inspection is under way any more. */
void transaction_host_watch(struct transaction_host *host);
void transaction_host_release(struct transaction_host *host);
/* Ends all transactions that are under way, when a drain has taken too long. */
void transaction_abort_all(struct transaction_host *host);

/* The number as text. The first call writes it. */
const char *transaction_id(struct transaction *transaction);

/* The chains of services that the transaction went through, in their order. Returns how many. */
unsigned transaction_chains(const struct transaction *transaction,
                            const struct adapt_chain *chains[ACCESS_CHAINS]);

/* The services that the step asks; NULL: none. */
const struct adapt_chain *transaction_chain(const struct transaction *transaction, enum step step);

/* The stored response that the answer comes from: one that was found, or that is being stored now;
 * NULL: none is. */
static inline struct object *transaction_object(const struct transaction *transaction) {
    return transaction->storing.object != NULL ? transaction->storing.object
                                               : transaction->lookup.object;
}

/* Does nothing prove that an answer is that of the URL's host, so that it may go to this client only
 * (steps/destination.h)? */
static inline bool transaction_is_unproven(const struct transaction *transaction) {
    return (transaction->destination != NULL || exchange_is_intercepted(transaction->exchange)) &&
           destination_is_unproven(transaction);
}

#endif
