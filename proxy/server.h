/*
 * The server: all workers, and what they share: the settings, the cache, the disk, origins and
 * services. main.c makes one and gives it orders on signals; the admin plane reaches it through
 * control.h.
 *
 *     struct server server = {.path = "retort.conf", .lock = PTHREAD_MUTEX_INITIALIZER};
 *     server.settings = settings_load(server.path, error);
 *     if (server_start(&server, error)) {
 *         ... server_reload, server_reopen_logs ...
 *         server_drain(&server);
 *         server_wait(&server);
 *     }
 *     server_release(&server);                          also after a start that failed
 *
 * Threads: server_reload and what control.h offers come from any thread; all else from the main
 * thread.
 */
#ifndef RETORT_SERVER_H
#define RETORT_SERVER_H

#include "base/findings.h"
#include "worker.h"

enum { SERVER_PATIENCE = 1000 }; /* milliseconds for the answer of a worker */

struct server {
    const char *path;     /* of the configuration */
    pthread_mutex_t lock; /* settings: reloads come from signals and from the admin plane */
    struct settings *settings;
    struct settings *first; /* those of the start */
    struct cache *cache;
    struct disk *disk; /* NULL: there is none */
    struct shared_fetches *shared_fetches;
    struct origin_hosts *origin_hosts;
    struct waiting_downloads *waiting_downloads;
    struct verdicts *verdicts;
    struct origin_groups *origins;    /* of settings */
    struct shared_services *services; /* likewise */
    struct recorder *recorder;        /* the latest; NULL: there was none */
    struct worker **workers;
    unsigned worker_count;
    uint64_t started; /* milliseconds of the monotonic clock */
    _Atomic bool draining;
    _Atomic bool ended; /* the workers have: they answer nothing any more */
    struct client_total clients;
    struct memory_shares *memory;
};

/* False and a message: something is missing or taken. The server is then to be released. */
bool server_start(struct server *server, char error[SETTINGS_ERROR]);
/* Reads the configuration again. False: it is refused, and nothing has changed. `left`: what of it
 * was not applied. */
bool server_reload(struct server *server, char error[SETTINGS_ERROR], struct findings *left);
/* The logs are opened by their names again: somebody has renamed the files. */
void server_reopen_logs(struct server *server);
/* No new connections; the workers end when the open ones have finished. */
void server_drain(struct server *server);
/* The workers end at once. From any thread. */
void server_stop(struct server *server);
/* Waits for the end of the workers. */
void server_wait(struct server *server);
void server_release(struct server *server);

/* For control.c. Waits until the workers have done what was posted to them. */
void server_await_workers(struct server *server);

#endif
