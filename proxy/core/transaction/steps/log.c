
#include "base/assert.h"
#include "base/clocks.h"
#include "client/identity.h"
#include "http/credentials.h"
#include "tls/facts.h"
#include "transaction/access.h"
#include "transaction/adapted_variant.h"
#include "transaction/bumped.h"
#include "transaction/destination.h"
#include "transaction/request_counts.h"
#include "transaction/request_rules.h"
#include "transaction/spans.h"
#include "transaction/steps/reqmod.h"
#include "transaction/steps/reqmod_postcache.h"
#include "transaction/steps/respmod_postcache.h"
#include "transaction/transaction.h"
#include "transaction/waiting_page.h"
#include "transaction/watcher.h"

/* LOG: writes the line in the access log, and shows it to who watches. Then the client is released, and an object that is
 * still arriving is completed. */

static struct slice content_type(const struct transaction *transaction) {
    if (transaction->response.head != NULL && transaction->outcome.error == NULL)
        return http_head_value(transaction->response.head, HTTP_CONTENT_TYPE);
    if (transaction_object(transaction) == NULL)
        return transaction->outcome.error != NULL ? SLICE("text/html") : slice_make("", 0);
    return object_type(transaction_shown(transaction));
}

static void put_destination(struct transaction *transaction, struct access_entry *entry) {
    const struct exchange_ends *ends = transaction->exchange->ends;
    const struct listen_settings *listen = transaction->exchange->listen;
    if (listen == NULL || listen->mode != LISTEN_TRANSPARENT)
        return;
    char *text = arena_alloc(&transaction->arena, ADDRESS_TEXT);
    entry->destination = slice_make(text, address_format(ends->destination, text));
    entry->unproven = destination_is_unproven(transaction);
}

/* What is known of TLS on the client's side and of the connection around the request. */
static void note_tls(const struct transaction *transaction, struct access_entry *entry,
                     char user[HTTP_CREDENTIALS_USER]) {
    const struct intercepted_facts *facts = bumped_facts(transaction);
    struct slice credentials = transaction->request.credentials;
    entry->tls = transaction->exchange->ends->tls;
    const struct early_tunnel *tunnel = transaction->early_tunnel;
    if (tunnel != NULL) {
        entry->sni = tunnel->sni;
        facts = tunnel->class->describe(transaction, &entry->intercept);
    }
    if (facts != NULL) {
        credentials = facts->credentials;
        entry->sni = facts->sni;
        entry->connect = facts->connect;
        entry->issuer = facts->issuer;
        entry->verification = facts->verification;
    }
    if (credentials.length == 0 && facts == NULL)
        credentials = http_head_value(transaction->request.head, HTTP_PROXY_AUTHORIZATION);
    if (transaction->identity != NULL) {
        entry->user = transaction->identity->name;
        entry->user_proved = true;
    } else if (credentials.length > 0 && transaction->settings->authenticator_count == 0)
        entry->user = http_credentials_user(credentials, user);
}

static void put_access(const struct transaction *transaction, struct access_entry *entry) {
    const struct url_class *logged = transaction->access->logged;
    entry->access = access_rule_name(transaction);
    entry->access_log_only = slice_from(logged != NULL ? url_class_name(logged) : "");
}

static bool watcher_asks_class(const struct transaction *transaction) {
    const struct entry_watcher *watcher = transaction->host->watcher;
    while (watcher != NULL && !watcher->asks_class)
        watcher = watcher->next;
    return watcher != NULL;
}

static void write_entry(struct transaction *transaction, uint64_t end) {
    struct exchange *exchange = transaction->exchange;
    char user[HTTP_CREDENTIALS_USER];
    struct class_subject subject;
    const struct loop *loop = transaction->net->loop;
    struct access_entry entry = {
        .time = {loop->wall, (long)loop->wall_milliseconds * 1000000},
        .duration = (end - exchange->started) / 1000,
        .number = transaction->number,
        .trace = spans_sampled(transaction),
        .client = exchange_client_ip(exchange),
        .client_address = exchange_client(exchange),
        .listen = exchange->listen,
        .method = transaction->request.original_method,
        .url = transaction->request.original_url,
        .host = transaction->request.url.host,
        .content_type = content_type(transaction),
        .origin = transaction->fetch.origin_name,
        .request = transaction->request.head,
        .reply = transaction->delivery.reply.status != 0 ? &transaction->delivery.reply : NULL,
        .version = exchange->version,
        .status = transaction->outcome.status,
        .bytes = exchange->bytes_sent,
        .body_bytes = exchange_body_bytes(exchange),
        .result = transaction->outcome.result,
        .step = transaction->outcome.step != NULL ? transaction->outcome.step : "DELIVER",
        .error = transaction->outcome.error != NULL ? transaction->outcome.error
                                                    : fetch_broken_off(transaction),
        .aborted = exchange->state == EXCHANGE_ABORTED,
        .limit = transaction->outcome.limit,
    };
    put_destination(transaction, &entry);
    if (transaction->access != NULL)
        put_access(transaction, &entry);
    note_tls(transaction, &entry, user);
    entry.chain_count = transaction_chains(transaction, entry.chains);
    if (transaction->tunnel.relay != NULL)
        entry.bytes = entry.body_bytes = transaction->tunnel.relay->bytes[1];
    if ((access_logs_ask_class(transaction->host->logs) || watcher_asks_class(transaction)) &&
        transaction->request.head != NULL) {
        request_subject(transaction, &subject);
        subject.content_type = entry.content_type;
        entry.subject = &subject;
    }
    access_logs_write(transaction->host->logs, &entry);
    struct entry_watcher *watcher = transaction->host->watcher;
    for (; watcher != NULL; watcher = watcher->next)
        watcher->on_entry(watcher, transaction, &entry);
}

/* The access log wants the time as it is now; the counts are content with that of the loop. */
static void note_request(struct transaction *transaction) {
    const struct transaction_host *host = transaction->host;
    bool logged = host->watcher != NULL || access_logs_wanted(host->logs);
    uint64_t end =
        logged ? clocks_nanoseconds(CLOCK_MONOTONIC) : transaction->net->loop->now_nanoseconds;
    request_counts_add(host->request_counts, transaction, end);
    if (logged)
        write_entry(transaction, end);
}

/* Whoever has made the exchange wants to know. */
static void tell_maker(const struct transaction *transaction) {
    const struct outcome *outcome = &transaction->outcome;
    *transaction->exchange->told_of = (struct exchange_told){
        .result = cache_result_name(outcome->result),
        .url = transaction->caching.name.url,
        .error = outcome->error != NULL ? outcome->error : fetch_broken_off(transaction),
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
            spans_end(transaction, clocks_nanoseconds(CLOCK_MONOTONIC));
        storing_settle(transaction); /* before the client can ask again */
        if (transaction->exchange->told_of != NULL)
            tell_maker(transaction);
        let_client_go(transaction);
    }
    storing_settle(transaction);
    if (transaction->waiting_page != NULL && waiting_page_goes_on(transaction))
        return STEP_WAIT;
    bool waits = transaction->storing.pump.state == PUMP_RUNNING ||
                 (transaction->variant != NULL && adapted_variant_is_at_work(transaction->variant));
    return waits ? STEP_WAIT : STEP_DONE;
}

const struct step_row log_step = {.name = "LOG", .step = STEP_LOG, .run = log_run};
