/*
 * The server: all workers, and the objects that they share: the settings, the cache, the disk,
 * origins and services. main.c makes one and calls it when signals arrive; the admin plane calls it
 * through control.h.
 *
 *     struct server server = {.path = "retort.conf", .lock = PTHREAD_MUTEX_INITIALIZER};
 *     server.settings = settings_load(server.path, error);
 *     if (server_start(&server, NULL, error)) {
 *         ... server_reload, server_reopen_logs ...
 *         server_drain(&server);
 *         server_wait(&server);
 *     }
 *     server_release(&server);                          also after a start that failed
 *
 * Threads: server_reload, server_stop and the calls of control.h may come from any thread, all
 * other calls from the main thread.
 */
#ifndef RETORT_SERVER_H
#define RETORT_SERVER_H

#include "base/findings.h"
#include "worker.h"

enum { SERVER_PATIENCE = 1000 }; /* milliseconds for the answer of a worker */

struct server {
    const char *path;     /* of the configuration */
    pthread_mutex_t lock; /* for settings, origins, services and recorder */
    struct settings *settings;
    struct settings *first; /* the settings of the start */
    struct cache *cache;
    struct disk *disk; /* NULL: there is none */
    struct shared_fetches *shared_fetches;
    struct origin_hosts *origin_hosts;
    struct intermediates *intermediates;
    struct interception *interception;
    struct purge_orders *purge_orders;
    struct authentication *authentication;
    struct own_connections *own_connections;
    struct waiting_downloads *waiting_downloads;
    struct verdicts *verdicts;
    struct origin_groups *origins;    /* of settings */
    struct shared_services *services; /* of settings */
    struct recorder *recorder;        /* the latest; NULL: there was none */
    struct worker **workers;
    unsigned worker_count;
    uint64_t started; /* milliseconds of the monotonic clock */
    _Atomic bool draining;
    _Atomic bool ended; /* the workers have ended and do not answer any more */
    struct client_total clients;
    struct memory_shares *memory;
    struct takeover *takeover; /* of the process before; NULL: there was none */
    bool handing_over;         /* under the lock: to the next process */
};

/* False and a message: something is missing or in use. The caller then releases the server.
 * `inherited`: sockets of another process, may be NULL. server->takeover, if any, is asked for its
 * volumes when all else has been checked. */
bool server_start(struct server *server, struct inherited *inherited, char error[SETTINGS_ERROR]);
/* Reads the configuration again. False: it is refused, and nothing has changed. `left` gets a
 * finding for each part that is not applied. */
bool server_reload(struct server *server, char error[SETTINGS_ERROR], struct findings *left);
/* Opens the logs by their names again, after somebody has renamed the files. */
void server_reopen_logs(struct server *server);
/* From now on, or no longer: reloads are refused, because another process takes over. */
void server_forbid_reload(struct server *server, bool forbidden);
/* As server_drain, while another process goes on to accept from the same sockets (worker.h). */
void server_retire(struct server *server);
/* Stops accepting connections; each worker ends when its open connections have finished. */
void server_drain(struct server *server);
/* Makes the workers end at once. */
void server_stop(struct server *server);
/* Waits for the end of the workers. */
void server_wait(struct server *server);
void server_release(struct server *server);

/* Do all workers answer within SERVER_PATIENCE? */
bool server_answers(struct server *server);

/* For control.c. Waits until the workers have handled all messages that were posted to them. It
 * waits for each worker for at most SERVER_PATIENCE milliseconds. */
void server_await_workers(struct server *server);

#endif
