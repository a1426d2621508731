#include "part.h"

#include "base/assert.h"
#include "patience/patience.h"
#include "patience/trickle.h"
#include "patience/waiting_page.h"
#include "server.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/options.h"
#include "settings/part_settings.h"

/* The part patience: what clients get while services think. */

#define PATIENCE(member) ONE("", struct patience_settings, member)

static const struct option rows[] = {
    {PATIENCE(keep), .name = "patience_keep", .after = "drain_timeout", TIMEOUT, DEFAULT("10m"),
     DOC "Sets how long the result behind a waiting page (icap_service.patience_after) is kept "
         "for the client's address. It also sets how long the download goes on after the browser "
         "has stopped asking for it.",
     .example = "\"1h\""},
    {PATIENCE(space), .name = "patience_space", .after = "patience_keep", SIZE_OF(0, 1024 * GB),
     DEFAULT("1GB"),
     DOC "Limits the disk space of all results behind waiting pages together. They are files in "
         "temporary_directory. A download that would exceed the limit fails, and "
         "retort_patience_failures_total counts it.",
     .example = "\"20GB\""},
    {.name = NULL},
};

static bool patience_load(struct load *load, void *mine) {
    return load_values(load, document_section(load->document, "", NULL), "", mine);
}

static const struct part_settings patience_part_settings = {
    .options = rows,
    .size = sizeof(struct patience_settings),
    .load = patience_load,
};

static void patience_open(struct server *server) {
    server->parts[PART_PATIENCE] = waiting_downloads_new();
}

static void patience_close(struct server *server) {
    struct waiting_downloads *downloads = server->parts[PART_PATIENCE];
    server->parts[PART_PATIENCE] = NULL;
    waiting_downloads_free(&downloads);
}

static void patience_on_expiry(struct timer *timer) {
    struct patience_worker *worker = CONTAINER_OF(timer, struct patience_worker, expiry);
    struct loop *loop = worker->loop;
    timer_set(&loop->timers, timer, waiting_downloads_expire(worker->downloads, loop->now));
}

static void patience_join(struct transaction_host *host, void *state) {
    struct patience_worker *worker = xcalloc(1, sizeof *worker);
    worker->loop = host->net->loop;
    worker->downloads = state;
    timer_init(&worker->expiry, patience_on_expiry);
    host->parts[PART_PATIENCE] = worker;
}

static void patience_leave(struct transaction_host *host) {
    struct patience_worker *worker = host->parts[PART_PATIENCE];
    if (worker == NULL) /* the worker could not be made */
        return;
    timer_cancel(&worker->loop->timers, &worker->expiry);
    host->parts[PART_PATIENCE] = NULL;
    free(worker);
}

static const struct step_row *const patience_steps[] = {&collect_step, NULL};

const struct part part_patience = {
    .settings = &patience_part_settings,
    .steps = patience_steps,
    .patience = &waiting_page_class,
    .trickle = &trickle_class,
    .process = {.open = patience_open, .close = patience_close},
    .worker = {.join = patience_join, .leave = patience_leave},
};
