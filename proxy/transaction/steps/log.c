#include "transaction/patience.h"

#include "base/assert.h"

/* LOG: the line in the access log; then the client is let go, and an object that is still arriving
 * is seen home. */

static struct slice content_type(const struct transaction *transaction) {
    if (transaction->response != NULL && transaction->error == NULL)
        return http_head_value(transaction->response, HTTP_CONTENT_TYPE);
    if (transaction->object == NULL)
        return transaction->error != NULL ? SLICE("text/html") : slice_make("", 0);
    return object_type(transaction_shown(transaction));
}

static void write_entry(struct transaction *transaction) {
    struct exchange *exchange = transaction->exchange;
    bool unreadable = exchange->error_status != 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t end = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    const struct loop *loop = transaction->net->loop;
    struct access_entry entry = {
        .time = {loop->wall, (long)loop->wall_milliseconds * 1000000},
        .duration = (end - exchange->started) / 1000,
        .number = transaction->number,
        .client = client_ip(exchange->client),
        .method = transaction->method_text,
        .url = transaction->original_url,
        .content_type = content_type(transaction),
        .origin = transaction->origin_name,
        .request = unreadable ? NULL : transaction->request,
        .version = unreadable ? 11 : exchange->request.version,
        .status = transaction->status,
        .bytes = exchange->bytes_sent,
        .body_bytes = exchange_body_bytes(exchange),
        .result = transaction->result,
        .step = transaction->last_step != NULL ? transaction->last_step : "DELIVER",
        .error = transaction->error,
        .aborted = exchange->state == EXCHANGE_ABORTED,
    };
    entry.chain_count = transaction_chains(transaction, entry.chains);
    if (transaction->tunnel != NULL)
        entry.bytes = entry.body_bytes = transaction->tunnel->bytes[1];
    access_logs_write(transaction->host->logs, &entry);
}

/* Others may be reading what arrives, or will ask for it: worth going on without the client. */
static bool worth_finishing(const struct transaction *transaction) {
    return transaction->storing && !transaction->pump.overflowed;
}

/* Whatever reads from the exchange ends before the exchange does. */
static void let_client_go(struct transaction *transaction) {
    if (transaction->late != NULL)
        late_end(transaction->late);
    if (transaction->remembered != NULL)
        remembered_let_client_go(transaction);
    if (transaction->pump.state == PUMP_RUNNING && !worth_finishing(transaction))
        pump_stop(&transaction->pump);
    pump_set_unread(&transaction->pump);
    if (transaction->call != NULL)
        origin_call_forget_request(transaction->call);
    source_close(&transaction->request_body);
    if (transaction->outgoing != NULL) {
        source_close(&transaction->response_body);
        adapt_chain_close(&transaction->outgoing->chain);
    }
    if (transaction->reqmod != NULL) {
        source_close(&transaction->response_body);
        adapt_chain_close(transaction->reqmod);
    }
    transaction->exchange->waker = NULL;
    exchange_finish(&transaction->exchange);
}

/* Should requests try a refresh again at once? */
static void note_refresh(struct transaction *transaction) {
    struct flights *flights = transaction->host->flights;
    bool failed = transaction->result == RESULT_ERROR || transaction->result == RESULT_STALE ||
                  (transaction->result == RESULT_REFRESHED && !transaction->storing &&
                   transaction->response->status >= 500);
    if (failed) {
        transaction->net->counters.cache_background_failures++;
        flight_note_failure(flights, &transaction->name, loop_seconds(transaction->net->loop),
                            (time_t)((transaction->settings->cache.refresh_pause + 999) / 1000));
    } else {
        flight_note_success(flights, &transaction->name);
    }
}

enum step step_log(struct transaction *transaction) {
    if (!transaction->logged) {
        transaction->logged = true;
        if (transaction->exchange->state == EXCHANGE_ABORTED)
            transaction->net->counters.client_aborts++;
        if (access_logs_wanted(transaction->host->logs) && !transaction->exchange->background)
            write_entry(transaction);
        if (transaction->exchange->background)
            note_refresh(transaction);
        transaction_settle(transaction); /* before the client can ask again */
        let_client_go(transaction);
    }
    transaction_settle(transaction);
    if (transaction->patience != NULL && patience_goes_on(transaction))
        return STEP_WAIT;
    bool waits =
        transaction->pump.state == PUMP_RUNNING ||
        (transaction->remembered != NULL && remembered_is_at_work(transaction->remembered));
    return waits ? STEP_WAIT : STEP_DONE;
}
