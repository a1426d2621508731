#include "part.h"

#include "admin/admin.h"
#include "admin/settings.h"
#include "admin/settings_change.h"
#include "base/assert.h"
#include "base/version.h"
#include "net/inherited.h"
#include "net/memory_share.h"
#include "reload.h"
#include "server.h"

#include <jansson.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The questions and orders of the admin plane to the server. They reach workers by messages. */

static void control_report(void *context, struct admin_report *report) {
    struct server *server = context;
    pthread_mutex_lock(&server->lock);
    struct settings *settings = settings_use(server->settings);
    pthread_mutex_unlock(&server->lock);
    admin_report_begin(report, settings);
    report->state = atomic_load(&server->draining) ? "draining" : "running";
    report->uptime = report->now - server->started;
    report->under_way = turn_under_way(&server->turn, &report->under_way_for);
    settings_end_use(&settings);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker_report worker;
        if (atomic_load(&server->ended) ||
            !worker_report_ask(server->workers[i], &worker, SERVER_PATIENCE)) {
            report->workers_silent++;
            continue;
        }
        admin_report_add(report, &worker);
        worker_report_release(&worker);
    }
    admin_report_add_shared(report, server->cache, server->second_level);
    report->memory_returns = memory_shares_returns(server->memory);
}

static bool control_reload(void *context, struct settings_outcome *outcome) {
    return server_reload(context, outcome);
}

static bool control_change(void *context, const struct overrides *changes, bool keep,
                           const char *anew, struct settings_outcome *outcome) {
    return settings_change(context, changes, keep, anew, outcome);
}

static bool control_names(void *context, unsigned worker, const struct resolver_wish *wish,
                          struct resolver_report *report) {
    struct server *server = context;
    return !atomic_load(&server->ended) &&
           resolver_report_ask(server->workers[worker], wish, report, SERVER_PATIENCE);
}

static void control_drain(void *context) {
    server_ask_to_end(context);
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

/* Call it after server_start. */
static struct admin_calls server_calls_of(struct server *server) {
    return (struct admin_calls){
        .context = server,
        .report = control_report,
        .reload = control_reload,
        .change = control_change,
        .drain = control_drain,
        .worker_count = server->worker_count,
        .names = control_names,
        .cache = server->cache,
        .second_level = server->second_level,
        .settings = control_settings,
        .origins = control_origins,
        .parts = server->parts,
    };
}

/* The part admin: what operators see and steer. server->parts[PART_ADMIN] is the admin plane. */

static void plane_is_possible(const struct settings *settings, struct findings *findings) {
    char error[SETTINGS_ERROR];
    if (!admin_possible(settings, error))
        findings_add(findings, "%s", error);
}

/* Settings that are loaded before are not written as JSON. */
static void plane_prepare(struct server *server) {
    (void)server;
    json_set_alloc_funcs(xmalloc, free);
}

static const struct address *plane_address(const struct settings *settings) {
    const struct admin_settings *mine = admin_settings_of(settings);
    return mine->listen != NULL ? &mine->address : NULL;
}

static bool plane_open(struct server *server, struct inherited *inherited, char *error) {
    const struct settings *settings = server->settings;
    const struct admin_calls calls = server_calls_of(server);
    const struct address *address = plane_address(settings);
    int fd = -1;
    if (address != NULL)
        inherited_take(inherited, address, &fd, 1);
    server->parts[PART_ADMIN] = admin_start(settings, &calls, fd, error);
    return server->parts[PART_ADMIN] != NULL;
}

static int plane_socket(struct server *server) {
    return admin_socket(server->parts[PART_ADMIN]);
}

static void plane_own(struct server *server) {
    admin_own_file(server->parts[PART_ADMIN], server->settings);
}

static void plane_give_away(struct server *server) {
    admin_give_away(server->parts[PART_ADMIN]);
}

static void plane_close(struct server *server) {
    struct admin *admin = server->parts[PART_ADMIN];
    server->parts[PART_ADMIN] = NULL;
    admin_stop(&admin, atomic_load(&server->hurried));
}

static void plane_join(struct transaction_host *host, void *state) {
    (void)state;
    host->parts[PART_ADMIN] = request_counts_new(host);
}

static void plane_change(struct transaction_host *host) {
    request_counts_settings_changed(host->parts[PART_ADMIN]);
}

static void plane_leave(struct transaction_host *host) {
    struct request_counts *counts = host->parts[PART_ADMIN];
    host->parts[PART_ADMIN] = NULL;
    host->counter = NULL;
    if (counts != NULL)
        request_counts_release(counts);
    free(counts);
}

static const struct version_library *plane_libraries(void) {
    static struct version_library list[3];
    list[0] = (struct version_library){"libmicrohttpd", MHD_get_version()};
    list[1] = (struct version_library){"jansson", jansson_version_str()};
    return list;
}

static bool plane_print_options(const char *form) {
    bool markdown = strcmp(form, "markdown") == 0, man = strcmp(form, "man") == 0;
    if (markdown)
        settings_print_markdown(stdout);
    else if (man)
        settings_print_man(stdout);
    return markdown || man;
}

const struct part part_admin = {
    .process = {.is_possible = plane_is_possible, .open = plane_prepare},
    .socket =
        {
            .address = plane_address,
            .open = plane_open,
            .number = plane_socket,
            .own = plane_own,
            .give_away = plane_give_away,
            .close = plane_close,
        },
    .worker = {.join = plane_join, .change = plane_change, .leave = plane_leave},
    .settings = &admin_part_settings,
    .load_settings = settings_load_with_changes,
    .print_options = plane_print_options,
    .libraries = plane_libraries,
};
