#include "base/clocks.h"
#include "transaction/journal.h"
#include "transaction/spans.h"
#include "transaction/transaction.h"

/* LOG: shows the journal to the logs and to who watches. Then the client is released, and an object that is
 * still arriving is completed. */

/* The access log wants the time as it is now; the counts are content with that of the loop. */
static void note_request(struct transaction *transaction) {
    const struct transaction_host *host = transaction->host;
    bool logged = host->watcher != NULL || access_logs_wanted(host->logs);
    uint64_t end =
        logged ? clocks_nanoseconds(CLOCK_MONOTONIC) : transaction->net->loop->now_nanoseconds;
    uint64_t took = (end - transaction->exchange->started) / 1000;
    if (host->counter != NULL)
        host->counter->add(host->counter, transaction, took);
    if (logged)
        journal_show(transaction, took);
}

/* Whoever has made the exchange wants to know. */
static void tell_maker(const struct transaction *transaction) {
    const struct outcome *outcome = &transaction->outcome;
    *transaction->exchange->told_of = (struct exchange_told){
        .result = cache_result_name(outcome->result),
        .url = transaction->caching.name.url,
        .error = fetch_error(transaction),
        .stored = transaction_object(transaction) != NULL,
        .denied = outcome->result == RESULT_DENIED,
        .failed = outcome->result == RESULT_ERROR,
    };
}

/* Everything that reads from the exchange ends before the exchange. */
static void let_client_go(struct transaction *transaction) {
    if (transaction->begun != 0)
        transaction_let_go(transaction);
    transaction->exchange->waker = NULL;
    exchange_finish(&transaction->exchange);
}

/* Returns true when requests may try a refresh again at once. */
static void note_refresh(struct transaction *transaction) {
    struct shared_fetches *fetches = transaction->host->shared_fetches;
    bool failed =
        transaction->outcome.result == RESULT_ERROR ||
        transaction->outcome.result == RESULT_STALE ||
        (transaction->outcome.result == RESULT_REFRESHED && transaction->storing.object == NULL &&
         transaction->response.head->status >= 500);
    if (failed) {
        transaction->net->counters.cache_background_failures++;
        shared_fetch_note_failure(
            fetches, &transaction->caching.name, loop_seconds(transaction->net->loop),
            (time_t)((transaction->settings->cache.refresh_pause + 999) / 1000));
    } else {
        shared_fetch_note_success(fetches, &transaction->caching.name);
    }
}

static bool adapting_goes_on(struct transaction *transaction) {
    const struct adapting *adapting = transaction->adapting;
    return adapting != NULL &&
           ((adapting->patience != NULL && adapting->patience->goes_on(transaction)) ||
            (adapting->variants != NULL && adapting->variants->goes_on(transaction)));
}

static enum step log_run(struct transaction *transaction) {
    if (transaction->exchange != NULL) {
        if (transaction->exchange->state == EXCHANGE_ABORTED)
            transaction->net->counters.client_aborts++;
        if (transaction->limiting != NULL)
            transaction->limiting->class->note_end(transaction);
        if (!transaction->exchange->background)
            note_request(transaction);
        if (transaction->exchange->background)
            note_refresh(transaction);
        if (transaction->spans != NULL)
            transaction->spans->class->end(transaction, clocks_nanoseconds(CLOCK_MONOTONIC));
        storing_settle(transaction); /* before the client can ask again */
        if (transaction->exchange->told_of != NULL)
            tell_maker(transaction);
        let_client_go(transaction);
    }
    storing_settle(transaction);
    return adapting_goes_on(transaction) || transaction->storing.pump.state == PUMP_RUNNING
               ? STEP_WAIT
               : STEP_DONE;
}

const struct step_row log_step = {.name = "LOG", .step = STEP_LOG, .run = log_run};
