/*
 * The room of content: what services do with the content of the cache (common/service/content.h). It
 * has a thread that walks the store and waits for disks, and it knows the workers, which fetch.
 *
 *     struct content_executor *room = content_executor_new(cache, &server->second_level, settings_of, server);
 *     content_executor_add_worker(room, clients);              for each worker
 *     struct content_account *account = content_account_open(room, "gray", &limits, numbers);
 *     ... content_account_start(account, &order) ...      content/account.h
 *     content_executor_end(room);                             before workers drain or stop
 *     content_executor_stop(room);                            no worker runs any more, or none has
 *     content_executor_free(&room);                           after services have ended
 *
 * Accounts take turns, so that one service with many operations does not keep the others waiting.
 *
 * Threads: any. Nothing waits but content_executor_stop, for one operation of the thread. One lock
 * stands for the room and all that is in it; it is held for no disk and no walk. Under it messages
 * are posted to workers.
 */
#ifndef RETORT_CONTENT_EXECUTOR_H
#define RETORT_CONTENT_EXECUTOR_H

#include "base/threads.h"
#include "cache/stored.h"

struct clients;
struct settings;

struct content_executor {
    unsigned magic;
#define CONTENT_EXECUTOR_MAGIC 0xc0470044u
    struct cache *cache;
    struct second_level *const *second_level;    /* it comes after the room */
    struct settings *(*settings)(void *context); /* the current ones, referenced */
    void *context;
    struct thread_clock clock;
    pthread_mutex_t lock; /* of all that follows */
    bool stopping;
    bool ending;               /* nothing is fetched or changed any more */
    struct list_link accounts; /* all of them */
    struct list_link turns;    /* those that have something for the thread */
    struct clients **places;   /* where requests can begin: one a worker */
    unsigned place_count, next_place;
};

struct content_executor *content_executor_new(struct cache *cache,
                                              struct second_level *const *second_level,
                                              struct settings *(*settings)(void *context),
                                              void *context);
/* Before the worker runs. */
void content_executor_add_worker(struct content_executor *room, struct clients *clients);
/* From now on nothing is fetched or changed: the process ends, or another one takes its place. Call
 * it before the workers are told: a fetch that has begun before is one of theirs. NULL: nothing
 * happens. */
void content_executor_end(struct content_executor *room);
/* Ends the thread. What is under way fails. */
void content_executor_stop(struct content_executor *room);
/* NULL does nothing. A room that services have which were left behind, and may come back, stays. */
void content_executor_free(struct content_executor **roomp);

/* Inside the room: has its thread work on what the account has. False: there is no thread. Under the
 * lock. */
bool content_executor_wake(struct content_executor *room);

#endif
