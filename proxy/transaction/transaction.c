#include "transaction/transaction.h"

#include "base/assert.h"
#include "base/log.h"
#include "transaction/access.h"
#include "transaction/adapted_variant.h"
#include "transaction/inspect.h"
#include "transaction/request_counts.h"
#include "transaction/spans.h"
#include "transaction/steps/bump.h"
#include "transaction/steps/destination.h"
#include "transaction/steps/intercept.h"
#include "transaction/steps/limit.h"
#include "transaction/steps/purge.h"
#include "transaction/steps/reqmod.h"
#include "transaction/steps/reqmod_postcache.h"
#include "transaction/steps/respmod.h"
#include "transaction/steps/respmod_postcache.h"
#include "transaction/trace.h"
#include "transaction/waiting_download.h"
#include "transaction/waiting_page.h"

#include <stdio.h>

enum { TRANSACTIONS_KEPT = 256 };

static const struct {
    const char *name;
    enum step (*run)(struct transaction *transaction);
    bool begins; /* something that end_fetch ends; any waiting phase serves as well */
} steps[] = {
    [STEP_RECEIVE] = {"RECEIVE", step_receive, false},
    [STEP_ADMIT] = {"ADMIT", step_admit, false},
    [STEP_ACCESS] = {"ACCESS", step_access, false},
    [STEP_LIMIT] = {"LIMIT", step_limit, true},
    [STEP_PURGE] = {"PURGE", step_purge, true},
    [STEP_DESTINATION] = {"DESTINATION", step_destination, false},
    [STEP_INTERCEPT] = {"INTERCEPT", step_intercept, true},
    [STEP_REWRITE] = {"REWRITE", step_rewrite, false},
    [STEP_REQMOD] = {"REQMOD", step_reqmod, true},
    [STEP_RECHECK] = {"RECHECK", step_recheck, false},
    [STEP_LOOKUP] = {"LOOKUP", step_lookup, false},
    [STEP_REQMOD_POSTCACHE] = {"REQMOD_POSTCACHE", step_reqmod_postcache, true},
    [STEP_BUMP] = {"BUMP", step_bump, true},
    [STEP_FETCH] = {"FETCH", step_fetch, true},
    [STEP_RESPMOD] = {"RESPMOD", step_respmod, true},
    [STEP_STORE] = {"STORE", step_store, true},
    [STEP_VARIANT] = {"VARIANT", step_variant, true},
    [STEP_RESPMOD_POSTCACHE] = {"RESPMOD_POSTCACHE", step_respmod_postcache, true},
    [STEP_TUNNEL] = {"TUNNEL", step_tunnel, true},
    [STEP_DELIVER] = {"DELIVER", step_deliver, false},
    [STEP_LOG] = {"LOG", step_log, false},
};

const char *step_name(enum step step) {
    return step < STEP_DONE ? steps[step].name : "DONE";
}

/* Releases what a hit does not have, in the order in which these parts read from one another. */
static void end_fetch(struct transaction *transaction) {
    lookup_end(transaction);
    if (transaction->destination != NULL)
        destination_end(transaction);
    if (transaction->respmod_postcache != NULL)
        respmod_postcache_end(transaction);
    if (transaction->variant != NULL)
        adapted_variant_end(transaction);
    storing_end(transaction);
    if (transaction->tunnel.relay != NULL || transaction->tunnel.dial != NULL)
        tunnel_end(transaction);
    if (transaction->bump != NULL)
        bump_end(transaction);
    if (transaction->intercept != NULL)
        intercept_end(transaction);
    response_close_body(&transaction->response);
    if (transaction->waiting_page != NULL)
        waiting_page_end(transaction);
    if (transaction->respmod != NULL)
        respmod_end(transaction);
    if (transaction->fetch.route != NULL)
        fetch_end(transaction);
    request_close_body(transaction);
    if (transaction->reqmod_postcache != NULL)
        reqmod_postcache_close(transaction);
    if (transaction->reqmod != NULL)
        reqmod_close(transaction, transaction->reqmod);
    if (transaction->access != NULL)
        access_end(transaction);
    if (transaction->purge != NULL)
        purge_end(transaction);
    if (transaction->limiting != NULL)
        limit_end(transaction);
    if (transaction->inspecting != NULL)
        inspect_end(transaction);
}

/* Releases everything. */
static void transaction_end(struct transaction *transaction) {
    struct transaction_host *host = transaction->host;
    if (transaction->begun)
        end_fetch(transaction);
    task_cancel(&transaction->task);
    if (transaction->exchange != NULL)
        exchange_finish(&transaction->exchange);
    lookup_release(transaction);
    storing_release(transaction);
    delivery_release(transaction);
    if (transaction->identity != NULL)
        access_release(transaction);
    adapt_set_release(&transaction->adapt);
    list_remove(&transaction->link);
    host->net->counters.transactions_active--;
    arena_reset(&transaction->arena);
    transaction->magic = 0;
    if (host->free_count < TRANSACTIONS_KEPT) {
        transaction->next_free = host->free_list;
        host->free_list = transaction;
        host->free_count++;
    } else {
        arena_release(&transaction->arena);
        free(transaction);
    }
    if (host->on_end != NULL)
        host->on_end(host->on_end_arg);
}

static bool client_is_gone(const struct transaction *transaction) {
    return transaction->exchange != NULL && transaction->exchange->state == EXCHANGE_ABORTED;
}

/* A step has run, for the log, for spans or for an inspection. */
static void watch_step(struct transaction *transaction, enum step next) {
    if (transaction->settings->log_level == LOG_LEVEL_DEBUG)
        trace_step(transaction, next);
    if (spans_sampled(transaction) != NULL)
        spans_note_step(transaction, next);
    inspect_step(transaction, next);
}

static void begin_watching(struct transaction *transaction) {
    struct transaction_host *host = transaction->host;
    bool inspects = inspect_is_wanted(host);
    if (transaction->settings->tracing.collector != NULL)
        spans_begin(transaction);
    transaction->watched = inspects || transaction->settings->log_level == LOG_LEVEL_DEBUG ||
                           spans_sampled(transaction) != NULL;
    if (!inspects)
        transaction_host_watch(host);
}

/* `watched` is known where this is inlined, so that it costs nothing in the loop. */
static inline __attribute__((always_inline)) void run_steps(struct transaction *transaction,
                                                            bool watched) {
    while (transaction->step != STEP_DONE) {
        enum step next = client_is_gone(transaction) && transaction->step < STEP_TUNNEL
                             ? STEP_LOG
                             : steps[transaction->step].run(transaction);
        transaction->begun |= steps[transaction->step].begins || next == STEP_WAIT;
        if (watched)
            watch_step(transaction, next);
        if (next == STEP_WAIT)
            return;
        ASSERT(next > transaction->step);
        transaction->step = next;
    }
    transaction_end(transaction);
}

static void transaction_run(struct transaction *transaction) {
    if (__builtin_expect(transaction->watched, 0))
        run_steps(transaction, true);
    else
        run_steps(transaction, false);
}

static void transaction_on_task(struct task *task) {
    struct transaction *transaction = CONTAINER_OF(task, struct transaction, task);
    CHECK_OBJ(transaction, TRANSACTION_MAGIC);
    transaction_run(transaction);
}

const struct adapt_chain *transaction_chain(const struct transaction *transaction, enum step step) {
    const struct adapted_variant *variant = transaction->variant;
    switch (step) {
    case STEP_REQMOD: return transaction->reqmod != NULL ? &transaction->reqmod->chain : NULL;
    case STEP_REQMOD_POSTCACHE:
        return transaction->reqmod_postcache != NULL ? &transaction->reqmod_postcache->reqmod.chain
                                                     : NULL;
    case STEP_RESPMOD: return transaction->respmod != NULL ? &transaction->respmod->chain : NULL;
    case STEP_VARIANT:
        return variant != NULL && variant->postcache != NULL ? &variant->postcache->chain : NULL;
    case STEP_RESPMOD_POSTCACHE:
        return transaction->respmod_postcache != NULL
                   ? &transaction->respmod_postcache->postcache.chain
                   : NULL;
    default: return NULL;
    }
}

const char *transaction_id(struct transaction *transaction) {
    if (transaction->id[0] == '\0')
        slice_put_hex(transaction->id, transaction->number);
    return transaction->id;
}

static struct transaction *transaction_new(struct transaction_host *host) {
    struct transaction *transaction = host->free_list;
    struct arena arena;
    arena_init(&arena);
    if (transaction != NULL) {
        host->free_list = transaction->next_free;
        host->free_count--;
        arena = transaction->arena;
    } else {
        transaction = xmalloc(sizeof *transaction);
    }
    INIT_OBJ(transaction, TRANSACTION_MAGIC);
    transaction->arena = arena;
    transaction->host = host;
    transaction->net = host->net;
    task_init(&transaction->task, transaction_on_task);
    list_append(&host->active, &transaction->link);
    host->net->counters.transactions_active++;
    return transaction;
}

void transaction_host_watch(struct transaction_host *host) {
    host->watched = host->adapt->settings->watches_transactions || inspect_is_wanted(host);
}

void transaction_start(struct transaction_host *host, struct exchange *exchange) {
    struct transaction *transaction = transaction_new(host);
    transaction->adapt = adapt_set_reference(host->adapt);
    transaction->settings = host->adapt->settings;
    transaction->exchange = exchange;
    request_begin(transaction);
    exchange->waker = &transaction->task;
    transaction->number = host->id_prefix + host->id_next++;
    if (__builtin_expect(host->watched, 0))
        begin_watching(transaction);
    transaction_run(transaction);
}

static void waiting_downloads_on_timer(struct timer *timer) {
    struct transaction_host *host =
        CONTAINER_OF(timer, struct transaction_host, waiting_downloads_timer);
    struct loop *loop = host->net->loop;
    timer_set(&loop->timers, timer, waiting_downloads_expire(host->waiting_downloads, loop->now));
}

void transaction_host_init(struct transaction_host *host) {
    timer_init(&host->waiting_downloads_timer, waiting_downloads_on_timer);
    host->request_counts = xcalloc(1, sizeof *host->request_counts);
}

void transaction_host_release(struct transaction_host *host) {
    if (host->net != NULL)
        timer_cancel(&host->net->loop->timers, &host->waiting_downloads_timer);
    while (host->free_list != NULL) {
        struct transaction *next = host->free_list->next_free;
        arena_release(&host->free_list->arena);
        free(host->free_list);
        host->free_list = next;
    }
    host->free_count = 0;
    if (host->request_counts != NULL)
        request_counts_release(host->request_counts);
    free(host->request_counts);
    host->request_counts = NULL;
}

void transaction_abort_all(struct transaction_host *host) {
    LIST_FOR_EACH_SAFE (link, next, &host->active) {
        struct transaction *transaction = CONTAINER_OF(link, struct transaction, link);
        if (transaction->exchange != NULL)
            exchange_abort(transaction->exchange);
        transaction_end(transaction);
    }
}

unsigned transaction_chains(const struct transaction *transaction,
                            const struct adapt_chain *chains[ACCESS_CHAINS]) {
    const struct adapted_variant *variant = transaction->variant;
    unsigned count = 0;
    if (transaction->reqmod != NULL)
        chains[count++] = &transaction->reqmod->chain;
    if (transaction->reqmod_postcache != NULL)
        chains[count++] = &transaction->reqmod_postcache->reqmod.chain;
    if (transaction->respmod != NULL)
        chains[count++] = &transaction->respmod->chain;
    if (variant != NULL && variant->postcache != NULL)
        chains[count++] = &variant->postcache->chain;
    if (transaction->respmod_postcache != NULL)
        chains[count++] = &transaction->respmod_postcache->postcache.chain;
    return count;
}
