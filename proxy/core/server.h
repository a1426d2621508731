/*
 * The server: all workers, and the objects that they share: the settings, the cache,
 * its second level, origins and services. main.c makes one and calls it when signals arrive; the admin
 * plane calls it through control.h.
 *
 *     struct server server = SERVER_AT("retort.conf");
 *     server.settings = settings_load(server.path, error);
 *     if (server_prepare(&server, NULL, error) && server_open(&server, false, error) &&
 *         server_run(&server, error)) {
 *         ... server_reload, server_change (reload.h) ...
 *         server_drain(&server);
 *         if (!server_wait(&server)) ...                  a worker hangs
 *     }
 *     server_release(&server);                          also after a start that failed
 *
 * Threads: server_stop, server_ask_to_end and the calls of control.h may come from any thread, all other calls from the main
 * thread. Who changes something takes the turn, then `applying`, then `lock`; who looks takes
 * `lock` alone, and so waits for no change.
 */
#ifndef RETORT_SERVER_H
#define RETORT_SERVER_H

#include "part.h"
#include "turn.h"
#include "worker.h"

enum { SERVER_PATIENCE = 1000 }; /* milliseconds for the answer of a worker */

struct server {
    const char *path; /* of the configuration */
    struct turn turn; /* as long as a reload or a change takes, with the services that start */
    pthread_mutex_t applying;  /* while settings come into use, which waits for workers and disks */
    pthread_mutex_t lock;      /* for settings and origins; nobody waits under it */
    struct settings *settings; /* used */
    struct settings *first;    /* the settings of the start */
    struct cache *cache;
    struct second_level *second_level; /* NULL: there is none */
    struct shared_fetches *shared_fetches;
    struct origin_hosts *origin_hosts;
    struct origin_groups *origins; /* of settings */
    void *parts[PART_COUNT];       /* what each part keeps (part.h) */
    struct worker **workers;
    unsigned worker_count;
    uint64_t started; /* milliseconds of the monotonic clock */
    _Atomic bool draining;
    _Atomic bool hurried; /* the workers are to end at once */
    _Atomic bool ended;   /* the workers have ended and do not answer any more */
    struct client_total clients;
    struct memory_shares *memory;
    struct claims *claims; /* between server_prepare and server_open */
    bool handing_over;     /* in turn: to the next process */
};

/* The path of the configuration. */
#define SERVER_AT(configuration)                                                                   \
    {                                                                                              \
        .path = (configuration), .turn = TURN_FREE, .applying = PTHREAD_MUTEX_INITIALIZER,         \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/* A start has three parts. False and a message: something is missing or in use. The caller then
 * releases the server.
 *
 * The first one checks what can fail, and takes the addresses. `inherited`: sockets of another
 * process, may be NULL. */
bool server_prepare(struct server *server, struct inherited *inherited, char error[SETTINGS_ERROR]);
/* The second one opens the second level of the cache, and makes the workers. `taken`: another process
 * lends it. */
bool server_open(struct server *server, bool taken, char error[SETTINGS_ERROR]);
/* The third one accepts connections. */
bool server_run(struct server *server, char error[SETTINGS_ERROR]);
/* As server_drain, while another process goes on to accept from the same sockets (worker.h). */
void server_retire(struct server *server);
/* Accepts what the process before has left in the queues of its sockets. */
void server_look_again(struct server *server);
/* Tells the service manager, and stops accepting connections; each worker ends when its open
 * connections have finished. */
void server_drain(struct server *server);
/* Tells the service manager alone. */
void server_tell_of_end(void);
/* Asks the main thread to drain and to end the process, by a signal of its own: one SIGTERM that
 * waits would swallow the next one, by which an operator ends the process at once. */
void server_ask_to_end(struct server *server);
int server_end_signal(void);
/* Makes the workers end at once. */
void server_stop(struct server *server);
/* Waits for the end of the workers. One that is in a function of a module is waited for as long as
 * drain_timeout, or until server_stop, and a moment longer. False: there is such a one. It is left behind,
 * and nothing of it or of the server may be released: server_write_out instead. */
bool server_wait(struct server *server);
/* Writes what is to be written: purges, disks, logs and spans. For a process that ends without a release. */
void server_write_out(struct server *server);
/* False: threads of services are left behind, which may come back. The process must end at once. */
bool server_release(struct server *server);

/* The current ones, referenced. Any thread. */
struct settings *server_settings(struct server *server);

/* Do all workers answer within SERVER_PATIENCE? */
bool server_answers(struct server *server);

/* Calls `see` with all sockets of each worker, until it returns false. False too when the workers do
 * not answer. */
bool server_each_socket(struct server *server,
                        bool (*see)(void *arg, const int *fds, unsigned count), void *arg);

/* Has the service manager keep the listening sockets (takeover/socket_store.h), or no longer. A
 * reload does that too. */
void server_keep_sockets(struct server *server);
void server_forget_sockets(struct server *server);

/* Waits until the workers have handled all messages that were posted to them. It
 * waits for each worker for at most SERVER_PATIENCE milliseconds. */
void server_await_workers(struct server *server);

#endif
