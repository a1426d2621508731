#include "admin/server_calls.h"

#include "base/assert.h"
#include "net/memory_share.h"
#include "reload.h"

static void control_report(void *context, struct admin_report *report) {
    struct server *server = context;
    pthread_mutex_lock(&server->lock);
    struct settings *settings = settings_reference(server->settings);
    struct shared_services *services = shared_services_reference(server->services);
    pthread_mutex_unlock(&server->lock);
    admin_report_begin(report, settings, services);
    report->state = atomic_load(&server->draining) ? "draining" : "running";
    report->uptime = report->now - server->started;
    report->under_way = turn_under_way(&server->turn, &report->under_way_for);
    shared_services_release(&services);
    settings_release(&settings);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker_report worker;
        if (atomic_load(&server->ended) ||
            !worker_ask(server->workers[i], &worker, SERVER_PATIENCE)) {
            report->workers_silent++;
            continue;
        }
        admin_report_add(report, &worker);
        worker_report_release(&worker);
    }
    admin_report_add_shared(report, server->cache, server->second_level, server->verdicts);
    report->memory_returns = memory_shares_returns(server->memory);
}

static bool control_reload(void *context, struct settings_outcome *outcome) {
    return server_reload(context, outcome);
}

static bool control_change(void *context, const struct overrides *changes, bool keep,
                           const char *anew, struct settings_outcome *outcome) {
    return server_change(context, changes, keep, anew, outcome);
}

static bool control_names(void *context, unsigned worker, const struct resolver_wish *wish,
                          struct resolver_report *report) {
    struct server *server = context;
    return !atomic_load(&server->ended) &&
           worker_ask_names(server->workers[worker], wish, report, SERVER_PATIENCE);
}

static void control_drain(void *context) {
    server_ask_to_end(context);
}

static bool control_bump(void *context, const char *name, bool *kept) {
    struct server *server = context;
    pthread_mutex_lock(&server->applying); /* also so that the disk gets bumps in their order */
    struct shared_service *service = shared_services_find(server->services, name);
    if (service != NULL)
        *kept = second_level_keep_generation(server->second_level, service->tag->base,
                                             service_tag_bump(service->tag));
    pthread_mutex_unlock(&server->applying);
    return service != NULL;
}

static struct settings *control_settings(void *context) {
    return server_settings(context);
}

static struct origin_groups *control_origins(void *context) {
    struct server *server = context;
    pthread_mutex_lock(&server->lock);
    struct origin_groups *origins = origin_groups_reference(server->origins);
    pthread_mutex_unlock(&server->lock);
    return origins;
}

struct admin_calls server_calls_of(struct server *server) {
    return (struct admin_calls){
        .context = server,
        .report = control_report,
        .reload = control_reload,
        .change = control_change,
        .drain = control_drain,
        .worker_count = server->worker_count,
        .names = control_names,
        .bump = control_bump,
        .cache = server->cache,
        .second_level = server->second_level,
        .settings = control_settings,
        .origins = control_origins,
        .parts = server->parts,
    };
}
