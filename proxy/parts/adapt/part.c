#include "part.h"

#include "adapt/adaptation.h"
#include "adapt/service_log.h"
#include "adapt/settings.h"
#include "adapt/steps.h"
#include "adapt/waiting_download.h"
#include "server.h"
#include "transaction/watcher.h"

/* The part adapt: which requests and responses services are asked about, and what becomes of the answers. The kinds of
 * services are parts of their own. */

static void adapt_open(struct server *server) {
    server->parts[PART_ADAPT] = waiting_downloads_new();
}

static void adapt_close(struct server *server) {
    struct waiting_downloads *downloads = server->parts[PART_ADAPT];
    server->parts[PART_ADAPT] = NULL;
    waiting_downloads_free(&downloads);
}

static void adapt_hear(struct transaction_host *host) {
    struct adapt_worker *worker = host->parts[PART_ADAPT];
    service_log_hear(host, &worker->log);
}

static void adapt_on_expiry(struct timer *timer) {
    struct adapt_worker *worker = CONTAINER_OF(timer, struct adapt_worker, expiry);
    struct loop *loop = worker->net->loop;
    timer_set(&loop->timers, timer, waiting_downloads_expire(worker->downloads, loop->now));
}

static void adapt_join(struct transaction_host *host, void *state) {
    struct adapt_worker *worker = xcalloc(1, sizeof *worker);
    worker->net = host->net;
    worker->downloads = state;
    timer_init(&worker->expiry, adapt_on_expiry);
    host->parts[PART_ADAPT] = worker;
    adapt_hear(host);
}

static void adapt_leave(struct transaction_host *host) {
    struct adapt_worker *worker = host->parts[PART_ADAPT];
    if (worker == NULL) /* the worker could not be made */
        return;
    timer_cancel(&host->net->loop->timers, &worker->expiry);
    entry_watcher_leave(&host->watcher, &worker->log);
    host->parts[PART_ADAPT] = NULL;
    free(worker);
}

static const struct step_row *const adapt_steps[] = {
    &collect_step,           &reqmod_step, &reqmod_postcache_step, &respmod_step, &variant_step,
    &respmod_postcache_step, NULL,
};

const struct part part_adapt = {
    .settings = &adapt_part_settings,
    .steps = adapt_steps,
    .adapting = &adaptation_class,
    .process = {.open = adapt_open, .close = adapt_close},
    .worker = {.join = adapt_join, .change = adapt_hear, .leave = adapt_leave},
};
