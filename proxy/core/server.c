#include "server.h"

#include "adapt/verdicts.h"
#include "adapters.h"
#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "cache/key.h"
#include "cache/memory.h"
#include "cache/removal.h"
#include "log/target.h"
#include "net/memory_share.h"
#include "net/notify.h"
#include "readiness.h"
#include "settings/overrides.h"
#include "settings/start_only.h"
#include "tls/intermediates.h"
#include "tls/ticket_keys.h"
#include "transaction/invalidation_relay.h"
#include "transaction/purge_orders.h"
#include "transaction/step.h"
#include "transaction/waiting_download.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds: for the answer of a worker; between two looks at whether one may be left behind. */
enum { SOCKETS_PATIENCE = 10000, WAIT_LOOK = 50 };

static bool make_workers(struct server *server, char error[SETTINGS_ERROR]) {
    unsigned count = server->settings->workers;
    const struct worker_shared shared = {
        .clients = &server->clients,
        .memory = server->memory,
        .cache = server->cache,
        .second_level = server->second_level,
        .shared_fetches = server->shared_fetches,
        .origin_hosts = server->origin_hosts,
        .intermediates = server->intermediates,
        .purge_orders = server->purge_orders,
        .waiting_downloads = server->waiting_downloads,
        .verdicts = server->verdicts,
        .parts = server->parts,
        .origins = server->origins,
        .services = server->services,
    };
    server->workers = xcalloc(count, sizeof *server->workers);
    for (; server->worker_count < count; server->worker_count++) {
        struct worker *worker =
            worker_new(server->settings, &shared, server->worker_count, server->claims, error);
        if (worker == NULL)
            return false;
        server->workers[server->worker_count] = worker;
        PARTS_FOR_EACH (part, process.add_worker)
            part_table[part]->process.add_worker(worker);
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

/* A worker that hangs in a module has the settings from before until it comes back. */
static void await_settings(struct server *server, struct findings *refused) {
    for (unsigned i = 0; i < server->worker_count && !atomic_load(&server->ended); i++) {
        struct worker_report answer;
        char reason[WORKER_REASON];
        if (worker_ask(server->workers[i], &answer, SERVER_PATIENCE))
            worker_report_release(&answer);
        else if (worker_explain(server->workers[i], reason))
            findings_add(refused, "worker %u goes on with the settings from before: %s", i, reason);
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
        service_tag_resume(tag, second_level_kept_generation(server->second_level, tag->base));
    }
    return services;
}

/* A service manager has its own idea of how long a start or a reload takes (sd_notify(3)). */
static void ask_for_time(const struct settings *settings) {
    enum { MORE = 30000 }; /* milliseconds, for all the rest */
    uint64_t time = adapters_start_time(settings);
    if (time > 0)
        notify_send("EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)(time + MORE) * 1000);
}

/* The same; NULL and a message: one of them can't be used with its settings. */
static struct shared_services *usable_services(const struct server *server,
                                               const struct settings *settings,
                                               char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    ask_for_time(settings);
    struct shared_services *services = services_for(server, settings);
    shared_services_note_problems(services, &findings);
    if (findings.count == 0)
        return services;
    join_findings(&findings, error);
    shared_services_release(&services);
    return NULL;
}

/* What was there before is released behind the lock: a service may take its time to end. */
static void server_replace(struct server *server, struct settings *settings,
                           struct origin_groups *origins, struct shared_services *services) {
    pthread_mutex_lock(&server->lock);
    struct settings *old_settings = server->settings;
    struct origin_groups *old_origins = server->origins;
    struct shared_services *old_services = server->services;
    server->settings = settings;
    server->origins = origins;
    server->services = services;
    pthread_mutex_unlock(&server->lock);
    settings_release(&old_settings);
    origin_groups_release(&old_origins);
    shared_services_release(&old_services);
}

static void apply_settings(struct server *server, struct settings *settings,
                           struct shared_services *services, struct claims **claimsp,
                           struct findings *refused) {
    apply_log(settings);
    cache_set_limit(server->cache, settings->cache.memory);
    verdicts_set_limit(server->verdicts, settings->verdict_space);
    PARTS_FOR_EACH (number, process.change)
        part_table[number]->process.change(server, settings);
    struct origin_groups *origins = origin_groups_new(settings, server->origins);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_reload(server->workers[i], settings, origins, services, claimsp);
    await_settings(server, refused);
    log_targets_await();
    server_replace(server, settings, origins, services);
}

static void tell_of_silence(const struct server *server, unsigned index) {
    char reason[WORKER_REASON] = "it does not answer";
    worker_explain(server->workers[index], reason);
    log_error("worker %u does not give its sockets: %s", index, reason);
}

bool server_each_socket(struct server *server,
                        bool (*see)(void *arg, const int *fds, unsigned count), void *arg) {
    bool good = true;
    for (unsigned i = 0; good && i < server->worker_count; i++) {
        struct worker_sockets sockets;
        good = !atomic_load(&server->ended) &&
               worker_ask_sockets(server->workers[i], &sockets, SOCKETS_PATIENCE);
        if (good) {
            good = see(arg, sockets.fds, (unsigned)sockets.count);
            worker_sockets_release(&sockets);
        } else {
            tell_of_silence(server, i);
        }
    }
    return good;
}

static bool keep_some(void *arg, const int *fds, unsigned count) {
    struct socket_store *store = arg;
    socket_store_add(store, fds, count);
    return true;
}

void server_keep_sockets(struct server *server) {
    struct socket_store store = {0};
    server_each_socket(server, keep_some, &store);
    socket_store_send(&store);
}

static void keep_changed_sockets(struct server *server, const struct settings *old) {
    const struct settings *settings = server->settings;
    bool added = false;
    for (size_t i = 0; i < old->listen_count; i++)
        if (!settings_listens_at(settings, &old->listens[i].address))
            socket_store_remove(&old->listens[i].address);
    for (size_t i = 0; i < settings->listen_count; i++)
        added = added || !settings_listens_at(old, &settings->listens[i].address);
    if (added)
        server_keep_sockets(server);
}

void server_forget_sockets(struct server *server) {
    pthread_mutex_lock(&server->applying);
    for (size_t i = 0; i < server->settings->listen_count; i++)
        socket_store_remove(&server->settings->listens[i].address);
    pthread_mutex_unlock(&server->applying);
}

static bool server_refuse(struct settings_outcome *outcome, const char *reason) {
    snprintf(outcome->error, SETTINGS_ERROR, "%s", reason);
    return false;
}

/* Called by who has the turn, as the functions below. */
static bool takes_settings(const struct server *server, struct settings_outcome *outcome) {
    if (server->handing_over)
        return server_refuse(outcome,
                             "another process is taking over: repeat this for that one later");
    if (atomic_load(&server->draining))
        return server_refuse(outcome, "retort is stopping and takes no other settings");
    return true;
}

/* What is saved must not keep the next start from starting. */
static bool may_save(const struct settings *old, const struct settings *new,
                     char error[SETTINGS_ERROR]) {
    PARTS_FOR_EACH (number, process.may_save)
        if (!part_table[number]->process.may_save(old, new, error))
            return false;
    return true;
}

/* What can still be refused when the services have started. NULL: it is, with a message. */
static struct claims *last_claims(struct server *server, struct settings *settings, bool keep,
                                  struct settings_outcome *outcome) {
    struct claims *claims = NULL;
    if (takes_settings(server, outcome) &&
        (!keep || may_save(server->settings, settings, outcome->error)))
        claims = server_claim(settings, server->settings, NULL, outcome->error);
    enum overrides_written written = OVERRIDES_WRITTEN;
    if (claims != NULL && keep)
        written = overrides_write(settings->saved, settings->saved_settings_path, outcome->error,
                                  SETTINGS_ERROR);
    outcome->disk_failed = written == OVERRIDES_FAILED;
    outcome->disk_unsure = written == OVERRIDES_UNSURE;
    if (outcome->disk_failed)
        claims_free(&claims);
    return claims;
}

/* Under `applying`. False: the settings are refused. */
static bool server_adopt(struct server *server, struct settings *settings,
                         struct shared_services *services, bool keep,
                         struct settings_outcome *outcome) {
    struct claims *claims = last_claims(server, settings, keep, outcome);
    if (claims == NULL)
        return false;
    start_only_compare(server->first, settings, &outcome->waits);
    readiness_of_files(settings, &outcome->refused);
    settings->workers = server->first->workers;
    outcome->before = settings_reference(server->settings);
    outcome->after = settings_reference(settings);
    apply_settings(server, settings, services, &claims, &outcome->refused);
    keep_changed_sockets(server, outcome->before);
    return true;
}

/* Puts the settings to use, which may be NULL. `keep`: what was changed is in the file of
 * saved_settings first. Who ends the process sets `draining` and then takes `applying` to forget the sockets.
 * So no settings that were taken before open and store sockets behind that. */
static bool server_use(struct server *server, struct settings *settings, bool keep,
                       struct settings_outcome *outcome) {
    if (settings == NULL)
        return false;
    settings->start = settings_reference(server->first);
    steps_compile(settings);
    struct shared_services *services = usable_services(server, settings, outcome->error);
    pthread_mutex_lock(&server->applying);
    bool used = services != NULL && server_adopt(server, settings, services, keep, outcome);
    pthread_mutex_unlock(&server->applying);
    if (!used) {
        shared_services_release(&services);
        settings_release(&settings);
    }
    return used;
}

/* Each of the errors has a line of its own. */
static void log_refusal(const char *what, const char *error) {
    struct slice rest = slice_from(error), line;
    while (slice_next_line(&rest, &line))
        log_error("%s refused, the old configuration stays in use: %.*s", what, SLICE_PRINT(line));
}

static void log_left(const struct settings_outcome *outcome) {
    warn_of(&outcome->waits, "not applied: ");
    warn_of(&outcome->refused, "not applied: ");
}

/* With Type=notify-reload systemd waits for this message, and takes none whose time, in whole
 * microseconds, is before its signal. */
static void tell_of_reload(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
                (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
}

static void tell_of_end(void) {
    notify_send("STOPPING=1\nSTATUS=finishes what is under way");
}

/* Says in a line what was refused. */
static void tell_what_is_used(const struct settings_outcome *outcome, bool good) {
    enum { STATUS_REASON = 400 };
    const struct findings *left = outcome->refused.count > 0 ? &outcome->refused : &outcome->waits;
    const char *reason = !good ? outcome->error : left->count > 0 ? left->text[0] : "";
    int length = (int)strcspn(reason, "\n");
    length = length < STATUS_REASON ? length : STATUS_REASON;
    if (!good)
        notify_send(
            "READY=1\nSTATUS=serves by an older configuration: the reload was refused: %.*s",
            length, reason);
    else if (left->count > 0)
        notify_send("READY=1\nSTATUS=serves by the configuration as it was read again, but: %.*s",
                    length, reason);
    else
        notify_send("READY=1\nSTATUS=serves by the configuration as it was read again");
}

/* Ends the reload for the service manager, which waits for READY=1 in any case. Behind that the process may
 * be one that stops; the end may have been told meanwhile, and is told again. */
static void tell_of_reloaded(const struct server *server, const struct settings_outcome *outcome,
                             bool good) {
    tell_what_is_used(outcome, good);
    if (atomic_load(&server->draining))
        tell_of_end();
}

/* False: another change is under way, and the outcome says which. */
static bool server_take_turn(struct server *server, const char *what,
                             struct settings_outcome *outcome) {
    char reason[TURN_REASON];
    outcome->busy = !turn_take(&server->turn, what, reason);
    return !outcome->busy || server_refuse(outcome, reason);
}

/* By who has the turn, which ends. */
static bool reload_in_turn(struct server *server, struct settings_outcome *outcome) {
    bool takes = takes_settings(server, outcome);
    if (takes)
        tell_of_reload();
    bool good = takes && server_use(server, settings_load_again(server->settings, outcome->error),
                                    false, outcome);
    if (takes)
        tell_of_reloaded(server, outcome, good);
    turn_end(&server->turn);
    log_left(outcome);
    if (good)
        log_info("configuration read again from %s%s", server->path,
                 outcome->waits.count + outcome->refused.count == 0
                     ? ""
                     : "; some changes are not in use, see the warnings above");
    else
        log_refusal("reload", outcome->error);
    return good;
}

bool server_reload(struct server *server, struct settings_outcome *outcome) {
    return server_take_turn(server, "a reload that was asked for through the admin plane",
                            outcome) &&
           reload_in_turn(server, outcome);
}

bool server_reload_in_turn(struct server *server, struct settings_outcome *outcome) {
    turn_await(&server->turn, "a reload after SIGHUP");
    return reload_in_turn(server, outcome);
}

/* A restart would drop what it is needed for. */
static bool would_be_lost(const struct overrides *changes, struct settings_outcome *outcome) {
    const char *name = overrides_at_start(changes);
    if (name == NULL)
        return false;
    snprintf(outcome->error, SETTINGS_ERROR,
             "%.200s waits for a restart, and a restart drops what is not saved: save the change "
             "too (--save)",
             name);
    return true;
}

/* The file is written as a whole: what somebody has written into it would be gone. */
static bool can_be_saved(const struct settings *settings, struct settings_outcome *outcome) {
    const char *path = settings->saved_settings_path;
    if (path == NULL)
        return server_refuse(outcome, "nothing can be saved: set saved_settings to a file in the "
                                      "configuration, and reload");
    if (overrides_are_in(settings->saved, path))
        return true;
    snprintf(outcome->error, SETTINGS_ERROR,
             "%.1000s was changed since retort has read it: reload first (retortctl reload), then "
             "repeat this",
             path);
    return false;
}

static bool change_is_possible(const struct server *server, const struct overrides *changes,
                               bool keep, struct settings_outcome *outcome) {
    if (!takes_settings(server, outcome) || (!keep && would_be_lost(changes, outcome)))
        return false;
    return !keep || can_be_saved(server->settings, outcome);
}

static struct settings *changed_settings(const struct server *server,
                                         const struct overrides *changes, bool keep,
                                         const char *anew, struct settings_outcome *outcome) {
    return anew == NULL
               ? settings_change(server->settings, changes, keep, outcome->error)
               : settings_change_service(server->settings, anew, changes, keep, outcome->error);
}

bool server_change(struct server *server, const struct overrides *changes, bool keep,
                   const char *anew, struct settings_outcome *outcome) {
    const char *what = anew == NULL ? "a change of options" : "a change that starts a service anew";
    if (!server_take_turn(server, what, outcome))
        return false;
    bool good =
        change_is_possible(server, changes, keep, outcome) &&
        server_use(server, changed_settings(server, changes, keep, anew, outcome), keep, outcome);
    turn_end(&server->turn);
    log_left(outcome);
    if (good)
        log_info("settings changed at run time%s", keep ? " and saved" : "");
    else
        log_refusal("change", outcome->error);
    return good;
}

void server_reopen_logs(struct server *server) {
    pthread_mutex_lock(&server->applying);
    apply_log(server->settings);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_reopen_logs(server->workers[i]);
    pthread_mutex_unlock(&server->applying);
    log_info("logs opened again");
}

void server_forbid_reload(struct server *server, bool forbidden) {
    turn_await(&server->turn, "a takeover by another process");
    server->handing_over = forbidden;
    turn_end(&server->turn);
}

/* Before the workers are told: what a part has begun before is one of theirs. */
static void drain_parts(struct server *server) {
    PARTS_FOR_EACH (number, process.drain)
        part_table[number]->process.drain(server);
}

void server_retire(struct server *server) {
    drain_parts(server);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_retire(server->workers[i]);
}

void server_look_again(struct server *server) {
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_look_again(server->workers[i]);
}

void server_drain(struct server *server) {
    log_info(
        "draining: retort accepts no new connections and exits when the open ones have finished");
    atomic_store(&server->draining, true);
    tell_of_end();
    drain_parts(server);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_drain(server->workers[i]);
}

int server_end_signal(void) {
    return SIGRTMIN;
}

void server_ask_to_end(struct server *server) {
    if (!atomic_exchange(&server->draining, true))
        kill(getpid(), server_end_signal());
}

void server_stop(struct server *server) {
    drain_parts(server);
    atomic_store(&server->hurried, true);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_stop(server->workers[i]);
}

static uint64_t time_to_forsake(struct server *server) {
    pthread_mutex_lock(&server->lock);
    uint64_t patience = server->settings->drain_timeout + SERVER_PATIENCE;
    pthread_mutex_unlock(&server->lock);
    return clocks_milliseconds(CLOCK_MONOTONIC) + patience;
}

/* False: the worker is in a function of a module, and its time is over. */
static bool await_worker(struct server *server, unsigned index, uint64_t until) {
    struct worker *worker = server->workers[index];
    char reason[WORKER_REASON];
    while (!worker_wait(worker, WAIT_LOOK)) {
        bool late = clocks_milliseconds(CLOCK_MONOTONIC) > until || atomic_load(&server->hurried);
        if (!late || !worker_forsake(worker, SERVER_PATIENCE, reason))
            continue;
        log_error("worker %u does not end: %s; it is left behind, and its connections are cut: run "
                  "such a module in a process of its own (service.runs)",
                  index, reason);
        return false;
    }
    return true;
}

bool server_wait(struct server *server) {
    uint64_t until = time_to_forsake(server);
    bool all = true;
    for (unsigned i = 0; i < server->worker_count; i++)
        all &= await_worker(server, i, until);
    atomic_store(&server->ended, true);
    return all;
}

/* Makes the objects that the workers share, except the second level of the cache and the services. */
static void make_shared(struct server *server) {
    const struct settings *settings = server->settings;
    server->cache = cache_new(settings->cache.memory);
    memory_set_giver(cache_give_back, server->cache);
    server->memory = memory_shares_new(settings->workers);
    server->clients.tickets =
        ticket_keys_new((int64_t)(clocks_milliseconds(CLOCK_BOOTTIME) / 1000));
    server->shared_fetches = shared_fetches_new();
    server->origin_hosts = origin_hosts_new();
    server->intermediates = intermediates_new();
    server->waiting_downloads = waiting_downloads_new();
    server->verdicts = verdicts_new(settings->verdict_space);
    server->origins = origin_groups_new(server->settings, NULL);
    PARTS_FOR_EACH (number, process.open)
        part_table[number]->process.open(server);
}

bool server_prepare(struct server *server, struct inherited *inherited,
                    char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    server->started = clocks_milliseconds(CLOCK_MONOTONIC);
    apply_log(server->settings);
    readiness_of_files(server->settings, &findings);
    warn_of(&findings, "");
    steps_compile(server->settings);
    make_shared(server);
    server->first = settings_reference(server->settings);
    server->claims = server_claim(server->settings, NULL, inherited, error);
    return server->claims != NULL;
}

struct settings *server_settings(struct server *server) {
    pthread_mutex_lock(&server->lock);
    struct settings *settings = settings_reference(server->settings);
    pthread_mutex_unlock(&server->lock);
    return settings;
}

static bool open_second_level(struct server *server, bool taken, char error[SETTINGS_ERROR]) {
    error[0] = '\0';
    PARTS_FOR_EACH (number, open_second_level)
        server->second_level =
            part_table[number]->open_second_level(server->settings, server->cache, taken, error);
    return error[0] == '\0';
}

bool server_open(struct server *server, bool taken, char error[SETTINGS_ERROR]) {
    if (!open_second_level(server, taken, error))
        return false;
    server->purge_orders = purge_orders_new(server->cache, server->second_level);
    server->services = usable_services(server, server->settings, error);
    bool made = server->services != NULL && make_workers(server, error);
    claims_free(&server->claims);
    return made;
}

/* Of a client of the process before. The settings of that one may have made another name of the URL. */
static void remove_told(void *context, struct slice url) {
    struct server *server = context;
    struct arena arena;
    struct settings *settings = server_settings(server);
    arena_init(&arena);
    struct slice urls[] = {url, cache_url_by_settings(url, settings, NULL, &arena)};
    for (unsigned i = 0; i < 2; i++) {
        struct cache_name name = cache_name_of(urls[i]);
        removal_of_name(server->cache, server->second_level, &name);
        purge_orders_pass_on(server->purge_orders, urls[i]);
    }
    arena_release(&arena);
    settings_release(&settings);
}

int server_hear_removals(struct server *server) {
    int fd = -1;
    server->invalidation_relay = invalidation_relay_listen(remove_told, server, &fd);
    return fd;
}

bool server_run(struct server *server, char error[SETTINGS_ERROR]) {
    for (unsigned i = 0; i < server->worker_count; i++)
        if (!worker_start(server->workers[i])) {
            snprintf(error, SETTINGS_ERROR, "cannot start a thread");
            return false;
        }
    return true;
}

void server_write_out(struct server *server) {
    invalidation_relay_stop(&server->invalidation_relay);
    purge_orders_stop(server->purge_orders);
    second_level_stop(server->second_level);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_flush_logs(server->workers[i]);
    log_targets_finish();
    PARTS_FOR_EACH (number, process.write_out)
        part_table[number]->process.write_out(server);
}

/* The threads of parts and of the second level end before the workers, because they send messages to
 * workers. It is closed after the workers and the cache, which use it. */
bool server_release(struct server *server) {
    invalidation_relay_stop(&server->invalidation_relay);
    if (server->purge_orders != NULL)
        purge_orders_stop(server->purge_orders);
    PARTS_FOR_EACH (number, process.stop)
        part_table[number]->process.stop(server);
    claims_free(&server->claims);
    second_level_stop(server->second_level);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_join(&server->workers[i]);
    log_targets_finish();
    free(server->workers);
    purge_orders_free(&server->purge_orders);
    memory_set_giver(NULL, NULL);
    if (server->cache != NULL)
        cache_free(&server->cache);
    second_level_close(&server->second_level);
    if (server->shared_fetches != NULL)
        shared_fetches_free(&server->shared_fetches);
    memory_shares_free(&server->memory);
    ticket_keys_release(&server->clients.tickets);
    origin_hosts_free(&server->origin_hosts);
    intermediates_free(&server->intermediates);
    waiting_downloads_free(&server->waiting_downloads);
    verdicts_free(&server->verdicts);
    origin_groups_release(&server->origins);
    shared_services_release(&server->services);
    bool all = adapters_await_end(ADAPTERS_PATIENCE);
    PARTS_FOR_EACH_BACK (number, process.close)
        part_table[number]->process.close(server);
    settings_release(&server->first);
    settings_release(&server->settings);
    return all;
}
