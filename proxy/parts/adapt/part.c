#include "part.h"

#include "adapt/adaptation.h"
#include "adapt/service_log.h"
#include "adapt/settings.h"
#include "adapt/steps.h"
#include "transaction/watcher.h"

/* The part adapt: which requests and responses services are asked about, and what becomes of the answers. The kinds of
 * services are parts of their own. */

static void adapt_hear(struct transaction_host *host) {
    service_log_hear(host, host->parts[PART_ADAPT]);
}

static void adapt_join(struct transaction_host *host, void *state) {
    (void)state;
    host->parts[PART_ADAPT] = xcalloc(1, sizeof(struct entry_watcher));
    adapt_hear(host);
}

static void adapt_leave(struct transaction_host *host) {
    struct entry_watcher *log = host->parts[PART_ADAPT];
    if (log == NULL) /* the worker could not be made */
        return;
    entry_watcher_leave(&host->watcher, log);
    host->parts[PART_ADAPT] = NULL;
    free(log);
}

static const struct step_row *const adapt_steps[] = {
    &reqmod_step, &reqmod_postcache_step, &respmod_step, &respmod_postcache_step, NULL,
};

const struct part part_adapt = {
    .settings = &adapt_part_settings,
    .steps = adapt_steps,
    .adapting = &adaptation_class,
    .worker = {.join = adapt_join, .change = adapt_hear, .leave = adapt_leave},
};
