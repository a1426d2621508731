#include "transaction/transaction.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "client/identity.h"
#include "transaction/spans.h"
#include "transaction/trace.h"

#include <stdio.h>

enum { TRANSACTIONS_KEPT = 256 };

/* The row of the last of these steps, which is taken out. */
static const struct step_row *take_last(const struct step_list *list, uint32_t *steps) {
    unsigned last = 31 - (unsigned)__builtin_clz(*steps);
    *steps &= ~(UINT32_C(1) << last);
    return list->rows[last];
}

void transaction_let_go(struct transaction *transaction) {
    const struct step_list *list = transaction->settings->steps;
    for (uint32_t steps = transaction->begun & list->let_go; steps != 0;)
        take_last(list, &steps)->let_go(transaction);
}

/* Ends what a hit does not begin. */
static void end_begun(struct transaction *transaction) {
    const struct step_list *list = transaction->settings->steps;
    lookup_end(transaction); /* those who wait for it ask for themselves */
    for (uint32_t steps = transaction->begun & list->end; steps != 0;)
        take_last(list, &steps)->end(transaction);
    if (transaction->times != NULL && transaction->host->step_watcher != NULL)
        transaction->host->step_watcher->on_end(transaction->host->step_watcher, transaction);
}

/* Releases everything. */
static void transaction_end(struct transaction *transaction) {
    struct transaction_host *host = transaction->host;
    if (transaction->begun != 0)
        end_begun(transaction);
    task_cancel(&transaction->task);
    if (transaction->exchange != NULL)
        exchange_finish(&transaction->exchange);
    lookup_release(transaction);
    storing_release(transaction);
    delivery_release(transaction);
    if (transaction->identity != NULL)
        identity_release(&transaction->identity);
    snapshot_release(&transaction->snapshot);
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

/* The client has gone, and the step would only work for an answer. */
static bool is_for_nobody(const struct transaction *transaction) {
    return transaction->exchange != NULL && transaction->exchange->state == EXCHANGE_ABORTED &&
           transaction->step < STEP_DELIVER && transaction->step != STEP_TUNNEL;
}

/* A step has run, for the log, for spans or for a watcher. */
static void watch_step(struct transaction *transaction, enum step next) {
    struct step_watcher *watcher = transaction->host->step_watcher;
    struct step_times *times = transaction->times;
    times->now = clocks_nanoseconds(CLOCK_MONOTONIC);
    if (transaction->settings->log_level == LOG_LEVEL_DEBUG)
        trace_step(transaction, next);
    if (watcher != NULL)
        watcher->on_step(watcher, transaction, next);
    if (next != STEP_WAIT) {
        times->begun[next] = times->now;
        times->waits = 0;
    } else if (times->waits == 0) {
        times->waits = times->now;
    }
}

static bool steps_are_wanted(const struct transaction_host *host) {
    return host->step_watcher != NULL && host->step_watcher->wants(host->step_watcher);
}

static void begin_watching(struct transaction *transaction) {
    struct transaction_host *host = transaction->host;
    bool wanted = steps_are_wanted(host);
    if (transaction->settings->traces)
        PARTS_FOR_EACH (number, worker.trace)
            part_table[number]->worker.trace(transaction);
    if (wanted || transaction->settings->log_level == LOG_LEVEL_DEBUG ||
        spans_sampled(transaction) != NULL) {
        transaction->times = arena_zalloc(&transaction->arena, sizeof *transaction->times);
        transaction->times->begun[STEP_RECEIVE] = clocks_nanoseconds(CLOCK_MONOTONIC);
    }
    if (!wanted)
        transaction_host_watch(host);
}

/* Where the transaction comes to: the row that a step has named, or the first one behind it that is
 * wanted. */
static inline const struct step_row *const *find_wanted(const struct step_row *const *at,
                                                        struct transaction *transaction) {
    while ((*at)->is_wanted != NULL && !(*at)->is_wanted(transaction))
        at++;
    return at;
}

/* `watched` is known where this is inlined, so that it costs nothing in the loop. */
static inline __attribute__((always_inline)) void run_steps(struct transaction *transaction,
                                                            bool watched) {
    const struct step_list *list = transaction->settings->steps;
    const struct step_row *const *at = &list->rows[list->at[transaction->step]];
    bool leaves = is_for_nobody(transaction);
    while ((*at)->run != NULL) {
        const struct step_row *row = *at;
        enum step next = leaves ? STEP_LOG : row->run(transaction);
        leaves = false;
        if (row->begins || next == STEP_WAIT)
            transaction->begun |= UINT32_C(1) << (at - list->rows);
        if (next != STEP_WAIT)
            at = find_wanted(next == STEP_NEXT ? at + 1 : &list->rows[list->at[next]], transaction);
        if (watched)
            watch_step(transaction, next == STEP_WAIT ? next : (*at)->step);
        if (next == STEP_WAIT)
            return;
        ASSERT((*at)->step > row->step);
        transaction->step = (*at)->step;
    }
    transaction_end(transaction);
}

static void transaction_run(struct transaction *transaction) {
    if (__builtin_expect(transaction->times != NULL, 0))
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
    const struct step_list *list = transaction->settings->steps;
    const struct step_row *row = list->rows[list->at[step]];
    return row->step == step && row->chain != NULL ? row->chain(transaction) : NULL;
}

unsigned transaction_asked(const struct transaction *transaction, enum step step,
                           struct asked_service asked[ASKED_MAX]) {
    const struct adapt_chain *chain = transaction_chain(transaction, step);
    return chain != NULL ? transaction->host->adapting->tell(chain, asked) : 0;
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
    host->watched = host->snapshot->settings->watches_transactions || steps_are_wanted(host);
}

void transaction_start(struct transaction_host *host, struct exchange *exchange) {
    struct transaction *transaction = transaction_new(host);
    transaction->snapshot = snapshot_reference(host->snapshot);
    transaction->settings = host->snapshot->settings;
    transaction->exchange = exchange;
    request_begin(transaction);
    exchange->waker = &transaction->task;
    transaction->number = host->id_prefix + host->id_next++;
    if (__builtin_expect(host->watched, 0))
        begin_watching(transaction);
    transaction_run(transaction);
}

void transaction_host_init(struct transaction_host *host) {
    PARTS_FOR_EACH (number, adapting)
        host->adapting = part_table[number]->adapting;
    PARTS_FOR_EACH (number, variants)
        host->variants = part_table[number]->variants;
    PARTS_FOR_EACH (number, patience)
        host->patience = part_table[number]->patience;
}

void transaction_host_release(struct transaction_host *host) {
    while (host->free_list != NULL) {
        struct transaction *next = host->free_list->next_free;
        arena_release(&host->free_list->arena);
        free(host->free_list);
        host->free_list = next;
    }
    host->free_count = 0;
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
                            const struct adapt_chain *chains[STEP_CHAINS]) {
    const struct step_list *list = transaction->settings->steps;
    unsigned count = 0;
    for (unsigned i = 0; i < list->chain_count; i++) {
        chains[count] = list->chains[i]->chain(transaction);
        count += chains[count] != NULL;
    }
    return count;
}
