/*
 * The room of content: what services do with the content of the cache (common/service/content.h). It
 * has a thread that walks the store and waits for disks, and it knows the workers, which fetch.
 *
 *     struct content_room *room = content_room_new(&store, settings_of, server);
 *     content_room_add_place(room, clients);              for each worker
 *     struct content_account *account = content_account_open(room, "gray", &limits, numbers);
 *     ... content_account_start(account, &order) ...      content/account.h
 *     content_room_end(room);                             before workers drain or stop
 *     content_room_stop(room);                            no worker runs any more, or none has
 *     content_room_free(&room);                           when all accounts are closed
 *
 * Accounts take turns, so that one service with many operations does not keep the others waiting.
 *
 * Threads: any. Nothing waits but content_room_stop, for one operation of the thread. One lock
 * stands for the room and all that is in it; it is held for no disk and no walk. Under it messages
 * are posted to workers.
 */
#ifndef RETORT_CONTENT_ROOM_H
#define RETORT_CONTENT_ROOM_H

#include "base/list.h"
#include "content/stored.h"

#include <pthread.h>

struct clients;
struct settings;

struct content_room {
    unsigned magic;
#define CONTENT_ROOM_MAGIC 0xc0470044u
    struct content_store store;
    struct settings *(*settings)(void *context); /* the current ones, referenced */
    void *context;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t news;
    pthread_t thread;
    bool started, stopping;
    bool ending;               /* nothing is fetched or changed any more */
    struct list_link accounts; /* all of them */
    struct list_link turns;    /* those that have something for the thread */
    struct clients **places;   /* where requests can begin: one a worker */
    unsigned place_count, next_place;
};

struct content_room *content_room_new(const struct content_store *store,
                                      struct settings *(*settings)(void *context), void *context);
/* Before the worker runs. */
void content_room_add_place(struct content_room *room, struct clients *clients);
/* From now on nothing is fetched or changed: the process ends, or another one takes its place. Call
 * it before the workers are told: a fetch that has begun before is one of theirs. NULL: nothing
 * happens. */
void content_room_end(struct content_room *room);
/* Ends the thread. What is under way fails. */
void content_room_stop(struct content_room *room);
void content_room_free(struct content_room **roomp);

/* Inside the room: has its thread work on what the account has. False: there is no thread. Under the
 * lock. */
bool content_room_wake(struct content_room *room);

#endif
