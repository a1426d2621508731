/*
 * Places for messages at a service inside the proxy: how many the service may have at a time, of all
 * workers together (max_messages), and who waits for a place (queue_max, queue_timeout), as
 * messages wait for a connection to an ICAP server.
 *
 *     shared->places = inside_concurrency_new(settings, places_before);
 *     inside_queue_init(&service->queue, ...);                                 of one worker
 *
 *     inside_turn_init(&call->turn, &call->turn_task);
 *     switch (inside_turn_take(&service->queue, &call->turn)) {
 *     case INSIDE_TURN_TAKEN:   the message goes to the service
 *     case INSIDE_TURN_WAITS:   the task will run; ask again
 *     case INSIDE_TURN_FULL:    so many of this worker wait already
 *     }
 *     inside_turn_leave(&service->queue, &call->turn);       in any of these states, and again; the
 *                                                            task does not run afterwards
 *
 * Places go on over a reload, so that messages that are under way count. Settings that may still be
 * refused make places, so their max_messages counts only when a worker uses them.
 *
 * Threads: places are shared, and their number is atomic; a queue and its turns are the worker's.
 * Ownership: a queue references its places.
 */
#ifndef RETORT_INSIDE_CONCURRENCY_H
#define RETORT_INSIDE_CONCURRENCY_H

#include "base/list.h"
#include "event/waiter.h"
#include "settings/settings.h"

#include <stdatomic.h>

struct inside_concurrency {
    unsigned magic;
#define INSIDE_CONCURRENCY_MAGIC 0x1451de91u
    _Atomic unsigned references, most, taken;
    _Atomic bool asking; /* somebody is in `waiting` */
    pthread_mutex_t lock;
    struct list_link waiting; /* workers */
};

struct inside_queue {
    struct inside_concurrency *places;
    struct loop *loop;
    struct mailbox *mailbox;
    unsigned most; /* that may wait */
    unsigned count;
    struct list_link waiting; /* turns */
    struct waiter *waiter;    /* in the places, while somebody here waits */
    struct task task;
};

enum inside_turn_state { INSIDE_TURN_TAKEN, INSIDE_TURN_WAITS, INSIDE_TURN_FULL };

struct inside_turn {
    struct list_link link;
    bool called; /* taken off the list, and its task has not asked again yet */
    bool taken;
    struct task *task;
};

/* `before`: those of the same service; NULL: there are none. */
struct inside_concurrency *inside_concurrency_new(const struct service_settings *settings,
                                                  struct inside_concurrency *before);
void inside_concurrency_release(struct inside_concurrency **placesp);

/* From now on the places are as many as these settings say. */
void inside_queue_init(struct inside_queue *queue, struct inside_concurrency *places,
                       const struct service_settings *settings, struct loop *loop,
                       struct mailbox *mailbox);
/* Nobody waits in it any more. */
void inside_queue_release(struct inside_queue *queue);

void inside_turn_init(struct inside_turn *turn, struct task *task);
enum inside_turn_state inside_turn_take(struct inside_queue *queue, struct inside_turn *turn);
void inside_turn_leave(struct inside_queue *queue, struct inside_turn *turn);

#endif
