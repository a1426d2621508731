#include "reload.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/threads.h"
#include "log/target.h"
#include "net/notify.h"
#include "readiness.h"
#include "settings/start_only.h"
#include "transaction/step.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

void server_open_error_log(const struct settings *settings) {
    log_set_level(settings->log_level);
    if (settings->error_log != NULL && !log_open_file(settings->error_log))
        log_error("cannot open error_log %s: %s; messages still go to the old place: create its "
                  "directory, and let retort's user write to it",
                  settings->error_log, strerror(errno));
}

struct claims *server_claim(const struct settings *settings, const struct settings *old,
                            struct inherited *inherited, char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    readiness_of_privileges(settings, &findings);
    struct claims *claims = claims_make(settings, old, inherited, &findings);
    if (claims == NULL)
        findings_join(&findings, error, SETTINGS_ERROR);
    return claims;
}

/* A worker that hangs in a module has the settings from before until it comes back. */
static void await_settings(struct server *server, struct findings *refused) {
    for (unsigned i = 0; i < server->worker_count && !atomic_load(&server->ended); i++) {
        char reason[WORKER_REASON];
        if (!worker_answers(server->workers[i], SERVER_PATIENCE) &&
            worker_explain(server->workers[i], reason))
            findings_add(refused, "worker %u goes on with the settings from before: %s", i, reason);
    }
}

bool server_prepare_settings(struct server *server, struct settings *settings,
                             char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    PARTS_FOR_EACH (number, process.prepare)
        part_table[number]->process.prepare(server, settings, &findings);
    if (findings.count == 0)
        return true;
    findings_join(&findings, error, SETTINGS_ERROR);
    return false;
}

/* What was there before is released behind the lock: a service may take its time to end. */
static void server_replace(struct server *server, struct settings *settings,
                           struct origin_groups *origins) {
    pthread_mutex_lock(&server->lock);
    struct settings *old_settings = server->settings;
    struct origin_groups *old_origins = server->origins;
    server->settings = settings;
    server->origins = origins;
    pthread_mutex_unlock(&server->lock);
    origin_groups_release(&old_origins);
    settings_end_use(&old_settings);
}

static void apply_settings(struct server *server, struct settings *settings,
                           struct claims **claimsp, struct findings *refused) {
    server_open_error_log(settings);
    cache_set_limit(server->cache, settings->cache.memory);
    PARTS_FOR_EACH (number, process.change)
        part_table[number]->process.change(server, settings);
    struct origin_groups *origins = origin_groups_new(settings, server->origins);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_reload(server->workers[i], settings, origins, claimsp);
    await_settings(server, refused);
    log_targets_await();
    server_replace(server, settings, origins);
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

/* What can still be refused when the services have started. NULL: it is, with a message. */
static struct claims *last_claims(struct server *server, struct settings *settings,
                                  const struct settings_change *change,
                                  struct settings_outcome *outcome) {
    struct claims *claims = NULL;
    if (takes_settings(server, outcome))
        claims = server_claim(settings, server->settings, NULL, outcome->error);
    if (claims != NULL && change != NULL && change->keep != NULL &&
        !change->keep(settings, outcome))
        claims_free(&claims);
    return claims;
}

/* Under `applying`. False: the settings are refused. */
static bool server_adopt(struct server *server, struct settings *settings,
                         const struct settings_change *change, struct settings_outcome *outcome) {
    struct claims *claims = last_claims(server, settings, change, outcome);
    if (claims == NULL)
        return false;
    start_only_compare(server->first, settings, &outcome->waits);
    readiness_of_files(settings, &outcome->refused);
    settings->workers = server->first->workers;
    outcome->before = settings_reference(server->settings);
    outcome->after = settings_reference(settings);
    apply_settings(server, settings, &claims, &outcome->refused);
    keep_changed_sockets(server, outcome->before);
    return true;
}

/* Puts the settings to use, which may be NULL. `change`: that they are of; NULL: of a reload. Who ends the process sets `draining` and then takes `applying` to forget the sockets.
 * So no settings that were taken before open and store sockets behind that. */
static bool server_use(struct server *server, struct settings *settings,
                       const struct settings_change *change, struct settings_outcome *outcome) {
    if (settings == NULL)
        return false;
    settings->start = settings_reference(server->first);
    steps_compile(settings);
    bool prepared = server_prepare_settings(server, settings, outcome->error);
    pthread_mutex_lock(&server->applying);
    bool used = prepared && server_adopt(server, settings, change, outcome);
    pthread_mutex_unlock(&server->applying);
    if (!used)
        settings_end_use(&settings);
    return used;
}

/* Each of the errors has a line of its own. */
static void log_refusal(const char *what, const char *error) {
    struct slice rest = slice_from(error), line;
    while (slice_next_line(&rest, &line))
        log_error("%s refused, the old configuration stays in use: %.*s", what, SLICE_PRINT(line));
}

static void log_left(const struct settings_outcome *outcome) {
    findings_warn(&outcome->waits, "not applied: ");
    findings_warn(&outcome->refused, "not applied: ");
}

/* With Type=notify-reload systemd waits for this message, and takes none whose time, in whole
 * microseconds, is before its signal. */
static void tell_of_reload(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
                (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
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
        server_tell_of_end();
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
                                    NULL, outcome);
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

bool server_change(struct server *server, struct settings_change *change,
                   struct settings_outcome *outcome) {
    if (!server_take_turn(server, change->what, outcome))
        return false;
    bool good =
        takes_settings(server, outcome) &&
        server_use(server, change->make(change, server->settings, outcome), change, outcome);
    turn_end(&server->turn);
    log_left(outcome);
    if (!good)
        log_refusal("change", outcome->error);
    return good;
}

void server_reopen_logs(struct server *server) {
    pthread_mutex_lock(&server->applying);
    server_open_error_log(server->settings);
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

struct reloader {
    unsigned magic;
#define RELOADER_MAGIC 0x4e10ade4u
    struct server *server;
    struct thread_clock clock;
    bool threaded;
};

static uint64_t reload(void *arg) {
    struct reloader *reloader;
    struct settings_outcome outcome = {.error = ""};
    CAST_OBJ(reloader, arg, RELOADER_MAGIC);
    server_reload_in_turn(reloader->server, &outcome);
    settings_outcome_release(&outcome);
    return THREADS_NEVER;
}

struct reloader *reloader_start(struct server *server) {
    struct reloader *reloader;
    ALLOC_OBJ(reloader, RELOADER_MAGIC);
    reloader->server = server;
    thread_clock_init(&reloader->clock, reload, reloader);
    reloader->threaded = thread_clock_start(&reloader->clock, "rt-reload");
    return reloader;
}

void reloader_ask(struct reloader *reloader) {
    CHECK_OBJ(reloader, RELOADER_MAGIC);
    if (reloader->threaded)
        thread_clock_wake(&reloader->clock, 0);
    else
        reload(reloader);
}

void reloader_stop(struct reloader **reloaderp) {
    struct reloader *reloader = *reloaderp;
    *reloaderp = NULL;
    if (reloader == NULL)
        return;
    CHECK_OBJ(reloader, RELOADER_MAGIC);
    thread_clock_release(&reloader->clock);
    FREE_OBJ(reloader);
}
