/*
 * A worker: one thread with its loop, its listeners and its transactions. Workers share only the
 * settings and the objects in struct worker_shared. Other threads send messages to a worker.
 *
 *     struct worker *worker = worker_new(settings, &shared, index, claims, error);
 *     worker_start(worker);
 *     worker_reload(worker, settings, origins, &claims);              from any thread
 *     if (worker_answers(worker, 1000)) ...                           it has the settings
 *     worker_drain(worker);
 *     worker_join(&worker);
 *
 * Threads: worker_new, worker_start, worker_wait and worker_join from the main thread, the others
 * from any thread.
 */
#ifndef RETORT_WORKER_H
#define RETORT_WORKER_H

#include "cache/shared_fetch.h"
#include "cache/store.h"
#include "claims.h"
#include "client/clients.h"
#include "origin/host.h"
#include "settings/settings.h"

enum { WORKER_REASON = 200 };

struct question_class;
struct transaction_host;
struct worker;

/* The objects that all workers share. */
struct worker_shared {
    struct client_total *clients;
    struct memory_shares *memory; /* one for each worker */
    struct cache *cache;
    struct second_level *second_level; /* NULL: there is none */
    struct shared_fetches *shared_fetches;
    struct origin_hosts *origin_hosts;
    void *const *parts;            /* what each part keeps for the process */
    struct origin_groups *origins; /* of the settings; a worker takes its own reference */
};

/* The listeners of the worker take the claims that are left. `claims` may be NULL. */
struct worker *worker_new(struct settings *settings, const struct worker_shared *shared,
                          unsigned index, struct claims *claims, char error[SETTINGS_ERROR]);
bool worker_start(struct worker *worker);
/* The worker becomes the owner of *claimsp, which becomes NULL. */
void worker_reload(struct worker *worker, struct settings *settings, struct origin_groups *origins,
                   struct claims **claimsp);
/* Opens the access logs by their names again, after somebody has renamed the files. */
void worker_reopen_logs(struct worker *worker);
/* Has the worker's thread call run(host, arg), behind all that was posted before; at the latest when the worker
 * is joined. */
void worker_post(struct worker *worker, void (*run)(struct transaction_host *host, void *arg),
                 void *arg);
/* Asks the worker (event/mailbox.h). False: the worker did not answer within `patience` milliseconds.
 * When the answer comes, all messages that the caller posted before have been delivered. */
bool worker_ask(struct worker *worker, const struct question_class *question, void *subject,
                void *answer, unsigned patience);
/* A worker that has been in a module's function for longer than anybody waits is not asked: nobody
 * would take the question out of its mailbox. */
bool worker_may_answer(struct worker *worker, unsigned patience);
/* Does it answer at all? As worker_ask. */
bool worker_answers(struct worker *worker, unsigned patience);
/* What its transactions share: for the worker's thread, or as a subject. */
struct transaction_host *worker_host(struct worker *worker);
/* Further descriptors of the worker's listening sockets. */
struct worker_sockets {
    int *fds;
    size_t count;
};

/* As worker_ask. */
bool worker_ask_sockets(struct worker *worker, struct worker_sockets *sockets, unsigned patience);
void worker_sockets_release(struct worker_sockets *sockets);
/* Another process goes on to accept from the worker's sockets. Drains likewise, but an idle
 * connection may have one more request within half of settings->drain_timeout. */
void worker_retire(struct worker *worker);
/* Accepts connections that another process, which had the same sockets, has left in their queues. */
void worker_look_again(struct worker *worker);
/* Stops accepting. The worker ends when no connection and no transaction is left, or after
 * settings->drain_timeout. */
void worker_drain(struct worker *worker);
/* Makes the worker end at once. */
void worker_stop(struct worker *worker);
/* Waits for the end of the thread, so many milliseconds; false: it has not ended. Messages may still be
 * posted when it has, without effect. */
bool worker_wait(struct worker *worker, unsigned milliseconds);
/* What keeps the worker from answering, as "it has been in the function begin of the service gray for
 * 12 s" says it; false: it is in none. */
bool worker_explain(struct worker *worker, char reason[WORKER_REASON]);
/* A worker that has been in one function of a module for that long goes on no more: if it comes back from
 * there, it waits for the end of the process. What is the worker's is the caller's then. False: it has not
 * been there for so long, or is back. The reason is as above. */
bool worker_forsake(struct worker *worker, unsigned milliseconds, char reason[WORKER_REASON]);
/* Posts the lines of its logs that are gathered. Of a worker that has ended or is forsaken. */
void worker_flush_logs(struct worker *worker);
void worker_join(struct worker **workerp);

#endif
