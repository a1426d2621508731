#include "part.h"

#include "adapt/adapt_worker.h"
#include "adapt/adaptation.h"
#include "adapt/settings.h"
#include "adapt/steps.h"
#include "base/findings.h"
#include "cache/second_level.h"
#include "net/notify.h"
#include "server.h"

/* The part adapt: which requests and responses services are asked about, and what becomes of the answers. The kinds of
 * services are parts of their own. */

static void adapt_open(struct server *server) {
    struct adapt_process *process = xcalloc(1, sizeof *process);
    process->server = server;
    process->verdicts = verdicts_new(server->settings->verdict_space);
    server->parts[PART_ADAPT] = process;
}

/* A service manager has its own idea of how long a start or a reload takes (sd_notify(3)). */
static void ask_for_time(const struct settings *settings) {
    enum { MORE = 30000 }; /* milliseconds, for all the rest */
    uint64_t longest = 0;
    PARTS_FOR_EACH (number, services.start_time) {
        uint64_t time = part_table[number]->services.start_time(settings);
        longest = time > longest ? time : longest;
    }
    if (longest > 0)
        notify_send("EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)(longest + MORE) * 1000);
}

/* The generations of the services continue from the ones kept on disk. So results that a bump has
 * made invalid stay invalid after a start or a reload. */
static void resume_tags(struct second_level *second_level, const struct shared_services *services) {
    for (size_t i = 0; i < services->count; i++) {
        struct service_tag *tag = services->services[i]->tag;
        service_tag_resume(tag, second_level_kept_generation(second_level, tag->base));
    }
}

static void adapt_prepare(struct server *server, struct settings *settings,
                          struct findings *findings) {
    struct adapt_own *own = settings->parts[PART_ADAPT];
    const struct shared_services *before = NULL;
    if (server != NULL && server->settings != settings)
        before = shared_services_of(server->settings);
    if (server != NULL)
        ask_for_time(settings);
    own->services = shared_services_new(settings, before);
    if (server != NULL)
        resume_tags(server->second_level, own->services);
    shared_services_note_problems(own->services, findings);
}

static void adapt_unprepare(struct settings *settings) {
    struct adapt_own *own = settings->parts[PART_ADAPT];
    shared_services_free(&own->services);
}

static void adapt_change(struct server *server, struct settings *settings) {
    struct adapt_process *process = server->parts[PART_ADAPT];
    verdicts_set_limit(process->verdicts, settings->verdict_space);
}

static void adapt_close(struct server *server) {
    struct adapt_process *process = server->parts[PART_ADAPT];
    server->parts[PART_ADAPT] = NULL;
    if (process == NULL)
        return;
    verdicts_free(&process->verdicts);
    free(process);
}

static void adapt_join(struct transaction_host *host, void *state) {
    const struct adapt_process *process = state;
    adapt_worker_of(host)->adapters.verdicts = process->verdicts;
}

static void adapt_leave(struct transaction_host *host) {
    struct adapt_worker *worker = host->parts[PART_ADAPT];
    if (worker == NULL) /* the worker could not be made */
        return;
    entry_watcher_leave(&host->watcher, &worker->log);
    adapter_accounts_free(&worker->adapters.accounts);
    host->parts[PART_ADAPT] = NULL;
    free(worker);
}

static const struct step_row *const adapt_steps[] = {
    &reqmod_step, &reqmod_postcache_step, &respmod_step, &respmod_postcache_step, NULL,
};

const struct part part_adapt = {
    .settings = &adapt_part_settings,
    .steps = adapt_steps,
    .adapting = &adaptation_class,
    .process = {.open = adapt_open,
                .prepare = adapt_prepare,
                .unprepare = adapt_unprepare,
                .change = adapt_change,
                .close = adapt_close},
    .worker = {.join = adapt_join,
               .drain = adapt_worker_drain,
               .take = adapt_worker_take,
               .drop = adapt_worker_drop,
               .report = adapt_worker_report,
               .is_held = adapt_worker_is_held,
               .forsake = adapt_worker_forsake,
               .leave = adapt_leave},
};
