#include "adapt/adapt_worker.h"

#include "adapt/service_log.h"
#include "adapt/service_report.h"
#include "adapt/settings.h"
#include "adapt/warm_up.h"
#include "service/event.h"
#include "worker.h"

#include <stdio.h>

/* A connection is told to the services of the present settings. */
static void adapt_worker_on_closed(struct client_connection *connection, void *arg) {
    const struct adapt_set *set = ((const struct adapt_worker *)arg)->set;
    char ip[ADDRESS_IP_TEXT];
    const struct client_connection_class *class = connection->class;
    const struct service_connection told = {
        .client_ip = slice_make(ip, address_format_ip(&connection->ends.client, ip)),
        .requests = class->requests != NULL ? class->requests(connection) : 0,
        .bytes_in = connection->end.bytes_in,
        .bytes_out = connection->end.bytes_out,
        .microseconds =
            (connection->clients->net->loop->now_nanoseconds - connection->since) / 1000,
        .reason = slice_from(connection->end.reason),
    };
    for (size_t i = 0; i < set->service_count; i++)
        if ((set->services[i]->hears & ADAPTER_HEARS_CLOSED) != 0)
            set->services[i]->class->closed(set->services[i], &told);
}

/* What services of the set want to be told of. NULL: there is none any more. One worker asks them for all. */
static void adapt_worker_use(struct transaction_host *host, struct adapt_set *set) {
    struct adapt_worker *worker = adapt_worker_of(host);
    bool hears = set != NULL && (set->hears & ADAPTER_HEARS_CLOSED) != 0;
    warm_up_free(&worker->asking);
    worker->set = set;
    named_addresses_use(&worker->names, host->net, set);
    host->clients->on_closed = hears ? adapt_worker_on_closed : NULL;
    host->clients->on_closed_arg = worker;
    if (set != NULL && worker->adapters.first)
        worker->asking = warm_up_new(set);
}

/* At the first settings. */
static struct adapt_worker *adapt_worker_new(const struct transaction_host *host) {
    struct adapt_worker *worker = xcalloc(1, sizeof *worker);
    worker->adapters = (struct adapter_host){
        .net = host->net,
        .worker = host->index,
        .mailbox = host->mailbox,
        .accounts = xcalloc(1, sizeof *worker->adapters.accounts),
        .first = host->index == 0,
    };
    return worker;
}

void *adapt_worker_take(struct transaction_host *host, const struct settings *settings) {
    if (host->parts[PART_ADAPT] == NULL)
        host->parts[PART_ADAPT] = adapt_worker_new(host);
    struct adapt_worker *worker = adapt_worker_of(host);
    struct adapt_set *before = worker->set;
    struct adapt_set *set =
        adapt_set_new(&worker->adapters, settings, shared_services_of(settings));
    adapt_worker_use(host, set);
    service_log_hear(host, &worker->log);
    if (before != NULL)
        adapt_set_retire(before);
    return set;
}

void adapt_worker_drain(struct transaction_host *host) {
    warm_up_free(&adapt_worker_of(host)->asking);
}

void adapt_worker_drop(struct transaction_host *host, void *taken) {
    struct adapt_set *set = taken;
    if (set == adapt_worker_of(host)->set)
        adapt_worker_use(host, NULL);
    adapt_set_free(&set);
}

struct service_report *adapt_worker_report(const struct transaction_host *host) {
    const struct adapt_set *set = adapt_worker_of(host)->set;
    struct service_report *reports = xcalloc(set->service_count + 1, sizeof *reports);
    for (size_t i = 0; i < set->service_count; i++)
        adapter_report(set->services[i], &reports[i]);
    return reports;
}

bool adapt_worker_is_held(struct transaction_host *host, uint64_t *milliseconds, char *reason) {
    struct foreign_call_seen seen;
    bool held = foreign_call_look(&adapt_worker_of(host)->adapters.foreign, &seen);
    *milliseconds = seen.milliseconds;
    if (held)
        snprintf(reason, WORKER_REASON,
                 "it has been in the function %s of the service %s for %llu s", seen.function,
                 seen.service, (unsigned long long)seen.milliseconds / 1000);
    return held;
}

void adapt_worker_forsake(struct transaction_host *host) {
    foreign_call_forsake(&adapt_worker_of(host)->adapters.foreign);
}
