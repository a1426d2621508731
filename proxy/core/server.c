#include "server.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "cache/memory.h"
#include "cache/second_level.h"
#include "log/target.h"
#include "net/memory_share.h"
#include "net/notify.h"
#include "readiness.h"
#include "reload.h"
#include "tls/ticket_keys.h"
#include "transaction/step.h"

#include <signal.h>
#include <stdio.h>
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
        .parts = server->parts,
        .origins = server->origins,
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

void server_await_workers(struct server *server) {
    for (unsigned i = 0; i < server->worker_count && !atomic_load(&server->ended); i++)
        worker_answers(server->workers[i], SERVER_PATIENCE);
}

bool server_answers(struct server *server) {
    bool answered = true;
    for (unsigned i = 0; answered && i < server->worker_count; i++)
        answered = worker_answers(server->workers[i], SERVER_PATIENCE);
    return answered;
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

void server_forget_sockets(struct server *server) {
    pthread_mutex_lock(&server->applying);
    for (size_t i = 0; i < server->settings->listen_count; i++)
        socket_store_remove(&server->settings->listens[i].address);
    pthread_mutex_unlock(&server->applying);
}

void server_tell_of_end(void) {
    notify_send("STOPPING=1\nSTATUS=finishes what is under way");
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
    server_tell_of_end();
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
    server->origins = origin_groups_new(server->settings, NULL);
    PARTS_FOR_EACH (number, process.open)
        part_table[number]->process.open(server);
}

bool server_prepare(struct server *server, struct inherited *inherited,
                    char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    server->started = clocks_milliseconds(CLOCK_MONOTONIC);
    server_open_error_log(server->settings);
    readiness_of_files(server->settings, &findings);
    findings_warn(&findings, "");
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
    bool made =
        server_prepare_settings(server, server->settings, error) && make_workers(server, error);
    claims_free(&server->claims);
    return made;
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
    /* First: threads of parts use the second level. */
    PARTS_FOR_EACH (number, process.write_out)
        part_table[number]->process.write_out(server);
    second_level_stop(server->second_level);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_flush_logs(server->workers[i]);
    log_targets_finish();
}

/* The threads of parts and of the second level end before the workers, because they send messages to
 * workers. It is closed after the workers and the cache, which use it. */
bool server_release(struct server *server) {
    PARTS_FOR_EACH (number, process.stop)
        part_table[number]->process.stop(server);
    claims_free(&server->claims);
    second_level_stop(server->second_level);
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_join(&server->workers[i]);
    log_targets_finish();
    free(server->workers);
    memory_set_giver(NULL, NULL);
    if (server->cache != NULL)
        cache_free(&server->cache);
    second_level_close(&server->second_level);
    if (server->shared_fetches != NULL)
        shared_fetches_free(&server->shared_fetches);
    memory_shares_free(&server->memory);
    ticket_keys_release(&server->clients.tickets);
    origin_hosts_free(&server->origin_hosts);
    origin_groups_release(&server->origins);
    struct settings *used = settings_reference(server->settings);
    settings_end_use(&used);
    bool all = parts_await_end();
    PARTS_FOR_EACH_BACK (number, process.close)
        part_table[number]->process.close(server);
    settings_release(&server->first);
    settings_release(&server->settings);
    return all;
}
