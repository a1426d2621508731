#include "admin/request_counts.h"

#include "base/assert.h"
#include "transaction/spans.h"
#include "transaction/transaction.h"

#include <string.h>

static const char *const protocols[COUNTED_PROTOCOLS] = {"none", "HTTP/1.0", "HTTP/1.1", "HTTP/2"};
static const char *const statuses[COUNTED_STATUSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

const char *counted_protocol_name(unsigned protocol) {
    return protocols[protocol];
}

const char *counted_status_name(unsigned status) {
    return statuses[status];
}

static unsigned protocol_of(struct slice version) {
    if (version.length != 3)
        return 0;
    if (version.base[0] == '2')
        return 3;
    return version.base[2] == '1' ? 2 : 1;
}

static struct listener_counts *listener_named(struct request_counts *counts, const char *name) {
    for (struct listener_counts *known = counts->listeners; known != NULL; known = known->next)
        if (strcmp(known->name, name) == 0)
            return known;
    struct listener_counts *listener = xcalloc(1, sizeof *listener);
    listener->name = xstrdup(name);
    listener->next = counts->listeners;
    counts->listeners = listener;
    return listener;
}

static void adopt_settings(struct request_counts *counts, const struct settings *settings) {
    request_counts_settings_changed(counts);
    counts->of = xcalloc(settings->listen_count + 1, sizeof(struct listener_counts *));
    for (size_t i = 0; i < settings->listen_count; i++)
        counts->of[i] = listener_named(counts, settings->listens[i].name);
    counts->settings = settings;
}

static __attribute__((noinline)) struct listener_counts *
counted_listener(struct request_counts *counts, const struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    const struct settings *settings = exchange->listen_set->settings;
    if (exchange->listen == NULL)
        return listener_named(counts, "");
    if (settings != transaction->net->settings)
        return listener_named(counts, exchange->listen->name);
    adopt_settings(counts, settings);
    return counts->of[exchange->listen - settings->listens];
}

static struct listener_counts *listener_of(struct request_counts *counts,
                                           const struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    if (exchange->listen_set->settings != counts->settings || exchange->listen == NULL)
        return counted_listener(counts, transaction);
    return counts->of[exchange->listen - counts->settings->listens];
}

/* Not of the fastest: a hit from memory is no example of anything, and pays for none. */
static void keep_example(struct request_example *example, const struct transaction *transaction,
                         uint64_t microseconds) {
    const struct loop *loop = transaction->net->loop;
    const struct trace_context *trace = spans_sampled(transaction);
    *example = (struct request_example){
        .number = transaction->number,
        .microseconds = microseconds,
        .ended = (uint64_t)loop->wall * 1000 + loop->wall_milliseconds,
        .traced = trace != NULL,
    };
    if (trace != NULL)
        memcpy(example->trace, trace->trace, TRACE_ID);
}

static void request_counts_add(struct request_counter *counter,
                               const struct transaction *transaction, uint64_t took) {
    struct request_counts *counts = CONTAINER_OF(counter, struct request_counts, base);
    const struct exchange *exchange = transaction->exchange;
    const struct outcome *outcome = &transaction->outcome;
    unsigned class = outcome->status / 100;
    unsigned protocol = exchange->is_connection ? 0 : protocol_of(exchange->version);
    unsigned index = times_index(took);
    struct result_times *result = &counts->results[outcome->result];
    listener_of(counts, transaction)
        ->requests[protocol][exchange->request.method_id][outcome->result]
                  [class < COUNTED_STATUSES ? class : COUNTED_STATUSES - 1]++;
    times_add(&result->times, took);
    if (index > 0)
        keep_example(&result->examples[index], transaction, took);
}

struct request_counts *request_counts_new(struct transaction_host *host) {
    struct request_counts *counts = xcalloc(1, sizeof *counts);
    counts->base.add = request_counts_add;
    host->counter = &counts->base;
    return counts;
}

void request_counts_settings_changed(struct request_counts *counts) {
    free(counts->of);
    counts->of = NULL;
    counts->settings = NULL;
}

void request_counts_copy(const struct request_counts *counts, struct request_counts *copy) {
    *copy = (struct request_counts){0};
    request_counts_sum(copy, counts);
}

static void sum_listener(struct listener_counts *sum, const struct listener_counts *more) {
    uint64_t *to = &sum->requests[0][0][0][0];
    const uint64_t *from = &more->requests[0][0][0][0];
    for (size_t i = 0; i < sizeof sum->requests / sizeof *to; i++)
        to[i] += from[i];
}

/* The latest example of each class of duration stays. */
static void sum_result(struct result_times *sum, const struct result_times *more) {
    times_sum(&sum->times, &more->times);
    for (unsigned i = 0; i < TIMES_COUNT; i++)
        if (more->examples[i].ended > sum->examples[i].ended)
            sum->examples[i] = more->examples[i];
}

void request_counts_sum(struct request_counts *sum, const struct request_counts *more) {
    for (const struct listener_counts *one = more->listeners; one != NULL; one = one->next)
        sum_listener(listener_named(sum, one->name), one);
    for (unsigned i = 0; i < COUNTED_RESULTS; i++)
        sum_result(&sum->results[i], &more->results[i]);
}

void request_counts_release(struct request_counts *counts) {
    request_counts_settings_changed(counts);
    while (counts->listeners != NULL) {
        struct listener_counts *listener = counts->listeners;
        counts->listeners = listener->next;
        free(listener->name);
        free(listener);
    }
}
