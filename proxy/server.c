#include "server.h"

#include "adapt/verdicts.h"
#include "adapters.h"
#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "cache/memory.h"
#include "disk/disk.h"
#include "identity/authentication.h"
#include "intercept/interception.h"
#include "limits/limits.h"
#include "log/target.h"
#include "net/memory_share.h"
#include "net/own_connections.h"
#include "readiness.h"
#include "record/recorder.h"
#include "settings/start_only.h"
#include "takeover.h"
#include "tls/intermediates.h"
#include "tls/ticket_keys.h"
#include "transaction/purge_orders.h"
#include "transaction/waiting_download.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool start_workers(struct server *server, struct claims *claims,
                          char error[SETTINGS_ERROR]) {
    unsigned count = server->settings->workers;
    const struct worker_shared shared = {
        .clients = &server->clients,
        .memory = server->memory,
        .cache = server->cache,
        .disk = server->disk,
        .shared_fetches = server->shared_fetches,
        .origin_hosts = server->origin_hosts,
        .intermediates = server->intermediates,
        .interception = server->interception,
        .purge_orders = server->purge_orders,
        .authentication = server->authentication,
        .own_connections = server->own_connections,
        .waiting_downloads = server->waiting_downloads,
        .verdicts = server->verdicts,
        .origins = server->origins,
        .services = server->services,
        .admin_address = server->settings->admin.address,
    };
    server->workers = xcalloc(count, sizeof *server->workers);
    for (; server->worker_count < count; server->worker_count++) {
        struct worker *worker =
            worker_new(server->settings, &shared, server->worker_count, claims, error);
        if (worker == NULL)
            return false;
        server->workers[server->worker_count] = worker;
    }
    for (unsigned i = 0; i < count; i++)
        if (!worker_start(server->workers[i])) {
            snprintf(error, SETTINGS_ERROR, "cannot start a thread");
            return false;
        }
    return true;
}

static void apply_log(const struct settings *settings) {
    log_set_level(settings->log_level);
    if (settings->error_log != NULL && !log_open_file(settings->error_log))
        log_error("cannot open error_log %s: %s; messages still go to the old place: create its "
                  "directory, and let retort's user write to it",
                  settings->error_log, strerror(errno));
}

static void warn_of(const struct findings *findings, const char *before) {
    for (unsigned i = 0; i < findings->count; i++)
        log_warn("%s%s", before, findings->text[i]);
    if (findings->more > 0)
        log_warn("%sand %u more", before, findings->more);
}

/* Joins the findings, for which the configuration is refused, into one message. */
static void join_findings(const struct findings *findings, char error[SETTINGS_ERROR]) {
    size_t length = 0;
    error[0] = '\0';
    for (unsigned i = 0; i < findings->count && length < SETTINGS_ERROR; i++)
        length += (size_t)snprintf(error + length, SETTINGS_ERROR - length, "%s%s",
                                   i == 0 ? "" : "; ", findings->text[i]);
}

/* NULL and a message: the start or the reload is refused. */
static struct claims *server_claim(const struct settings *settings, const struct settings *old,
                                   struct inherited *inherited, char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    readiness_of_privileges(settings, &findings);
    struct claims *claims = claims_make(settings, old, inherited, &findings);
    if (claims == NULL)
        join_findings(&findings, error);
    return claims;
}

void server_await_workers(struct server *server) {
    for (unsigned i = 0; i < server->worker_count && !atomic_load(&server->ended); i++) {
        struct worker_report answer;
        if (worker_ask(server->workers[i], &answer, SERVER_PATIENCE))
            worker_report_release(&answer);
    }
}

bool server_answers(struct server *server) {
    bool answered = true;
    for (unsigned i = 0; answered && i < server->worker_count; i++) {
        struct worker_report answer;
        answered = worker_ask(server->workers[i], &answer, SERVER_PATIENCE);
        if (answered)
            worker_report_release(&answer);
    }
    return answered;
}

/* The generations of the services continue from the ones kept on disk. So results that a bump has
 * made invalid stay invalid after a start or a reload. */
static struct shared_services *services_for(const struct server *server,
                                            const struct settings *settings) {
    struct shared_services *services =
        shared_services_new(settings, adapters_class_of, server->services);
    for (size_t i = 0; i < services->count; i++) {
        struct service_tag *tag = services->services[i]->tag;
        service_tag_resume(tag, disk_kept_generation(server->disk, tag->base));
    }
    return services;
}

/* Entries of the table: what the file says, and one for each connection and each half-open one. */
static size_t limits_room(const struct settings *settings) {
    return settings->limits_entries + 2 * (size_t)settings->client.max_connections;
}

/* Before the settings are at work: finds what was counted for their limit sections before. */
static void adopt_limits(struct server *server, struct settings *settings) {
    limits_begin_change(server->clients.limits);
    limit_table_set_room(server->clients.limits->table, limits_room(settings),
                         clocks_milliseconds(CLOCK_MONOTONIC) * 1000000);
    for (size_t i = 0; i < settings->limit_count; i++)
        settings->limits[i].section =
            limits_section(server->clients.limits, settings->limits[i].name);
}

static void apply_settings(struct server *server, struct settings *settings,
                           struct claims **claimsp) {
    apply_log(settings);
    cache_set_limit(server->cache, settings->cache.memory);
    verdicts_set_limit(server->verdicts, settings->verdict_space);
    interception_configure(server->interception, settings);
    authentication_configure(server->authentication, &settings->authentication);
    adopt_limits(server, settings);
    struct origin_groups *origins = origin_groups_new(settings, server->origins);
    struct shared_services *services = services_for(server, settings);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_reload(server->workers[i], settings, origins, services, claimsp);
    server_await_workers(server);
    settings_release(&server->settings);
    origin_groups_release(&server->origins);
    shared_services_release(&server->services);
    server->settings = settings;
    server->origins = origins;
    server->services = services;
}

/* Called under the lock. */
static bool server_read_again(struct server *server, char error[SETTINGS_ERROR],
                              struct findings *left) {
    if (server->handing_over) {
        snprintf(error, SETTINGS_ERROR, "another process is taking over: reload that one later");
        return false;
    }
    struct settings *settings = settings_load(server->path, error);
    if (settings == NULL)
        return false;
    struct claims *claims = server_claim(settings, server->settings, NULL, error);
    if (claims == NULL) {
        settings_release(&settings);
        return false;
    }
    start_only_compare(server->first, settings, left);
    readiness_of_files(settings, left);
    settings->workers = server->first->workers;
    apply_settings(server, settings, &claims);
    return true;
}

/* Each of the errors has a line of its own. */
static void log_refusal(const char *error) {
    struct slice rest = slice_from(error), line;
    while (slice_next_line(&rest, &line))
        log_error("reload refused, the old configuration stays in use: %.*s", SLICE_PRINT(line));
}

bool server_reload(struct server *server, char error[SETTINGS_ERROR], struct findings *left) {
    pthread_mutex_lock(&server->lock);
    bool good = server_read_again(server, error, left);
    pthread_mutex_unlock(&server->lock);
    warn_of(left, "not applied: ");
    if (good)
        log_info("configuration read again from %s%s", server->path,
                 left->count == 0 ? "" : "; some changes are not in use, see the warnings above");
    else
        log_refusal(error);
    return good;
}

void server_reopen_logs(struct server *server) {
    pthread_mutex_lock(&server->lock);
    apply_log(server->settings);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_reopen_logs(server->workers[i]);
    pthread_mutex_unlock(&server->lock);
    log_info("logs opened again");
}

void server_forbid_reload(struct server *server, bool forbidden) {
    pthread_mutex_lock(&server->lock);
    server->handing_over = forbidden;
    pthread_mutex_unlock(&server->lock);
}

void server_retire(struct server *server) {
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_retire(server->workers[i]);
}

void server_drain(struct server *server) {
    log_info(
        "draining: retort accepts no new connections and exits when the open ones have finished");
    atomic_store(&server->draining, true);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_drain(server->workers[i]);
}

void server_stop(struct server *server) {
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_stop(server->workers[i]);
}

void server_wait(struct server *server) {
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_wait(server->workers[i]);
    atomic_store(&server->ended, true);
}

static bool open_disk(struct server *server, char error[SETTINGS_ERROR]) {
    error[0] = '\0';
    if (server->takeover != NULL && !takeover_get_disks(server->takeover, error))
        return false;
    server->disk = server->takeover == NULL ? disk_open(server->settings, server->cache, error)
                                            : disk_take(server->settings, server->cache,
                                                        takeover_pins(server->takeover), error);
    return error[0] == '\0';
}

/* Makes the objects that the workers share, except the disk and the services. */
static void make_shared(struct server *server) {
    const struct settings *settings = server->settings;
    server->cache = cache_new(settings->cache.memory);
    memory_set_giver(cache_give_back, server->cache);
    server->memory = memory_shares_new(settings->workers);
    server->clients.tickets =
        ticket_keys_new((int64_t)(clocks_milliseconds(CLOCK_BOOTTIME) / 1000));
    server->clients.limits = limits_new(limits_room(settings));
    adopt_limits(server, server->settings);
    server->shared_fetches = shared_fetches_new();
    server->origin_hosts = origin_hosts_new();
    server->intermediates = intermediates_new();
    server->interception = interception_new(settings);
    server->authentication = authentication_new(&settings->authentication, settings->workers);
    server->own_connections = own_connections_new();
    server->waiting_downloads = waiting_downloads_new();
    server->verdicts = verdicts_new(settings->verdict_space);
    server->origins = origin_groups_new(server->settings, NULL);
}

bool server_start(struct server *server, struct inherited *inherited, char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    server->started = clocks_milliseconds(CLOCK_MONOTONIC);
    apply_log(server->settings);
    readiness_of_files(server->settings, &findings);
    warn_of(&findings, "");
    make_shared(server);
    server->first = settings_reference(server->settings);
    struct claims *claims = server_claim(server->settings, NULL, inherited, error);
    bool opened = claims != NULL && open_disk(server, error);
    server->purge_orders = purge_orders_new(server->cache, server->disk);
    server->services = services_for(server, server->settings);
    bool started = opened && start_workers(server, claims, error);
    claims_free(&claims);
    return started;
}

/* The threads of the disk and of the checks end before the workers, because they send messages to
 * workers. The disk is closed after the workers and the cache, which use it. */
void server_release(struct server *server) {
    if (server->purge_orders != NULL)
        purge_orders_stop(server->purge_orders);
    takeover_free(&server->takeover);
    disk_stop(server->disk);
    authentication_stop(server->authentication);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_join(&server->workers[i]);
    log_targets_finish();
    free(server->workers);
    purge_orders_free(&server->purge_orders);
    memory_set_giver(NULL, NULL);
    if (server->cache != NULL)
        cache_free(&server->cache);
    disk_close(&server->disk);
    if (server->shared_fetches != NULL)
        shared_fetches_free(&server->shared_fetches);
    memory_shares_free(&server->memory);
    ticket_keys_release(&server->clients.tickets);
    limits_free(&server->clients.limits);
    origin_hosts_free(&server->origin_hosts);
    intermediates_free(&server->intermediates);
    interception_free(&server->interception);
    authentication_free(&server->authentication);
    own_connections_free(&server->own_connections);
    waiting_downloads_free(&server->waiting_downloads);
    verdicts_free(&server->verdicts);
    origin_groups_release(&server->origins);
    shared_services_release(&server->services);
    recorder_release(&server->recorder);
    settings_release(&server->first);
    settings_release(&server->settings);
}
