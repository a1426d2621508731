#include "inside/concurrency.h"

#include "base/assert.h"

#include <stdlib.h>

/* Of all workers. */

struct inside_concurrency *inside_concurrency_new(const struct service_settings *settings,
                                                  struct inside_concurrency *before) {
    struct inside_concurrency *places = before;
    if (places != NULL) {
        CHECK_OBJ(places, INSIDE_CONCURRENCY_MAGIC);
        atomic_fetch_add(&places->references, 1);
    } else {
        ALLOC_OBJ(places, INSIDE_CONCURRENCY_MAGIC);
        atomic_init(&places->references, 1);
        pthread_mutex_init(&places->lock, NULL);
        list_init(&places->waiting);
        atomic_init(&places->most, settings->max_messages);
    }
    return places;
}

void inside_concurrency_release(struct inside_concurrency **placesp) {
    struct inside_concurrency *places = *placesp;
    *placesp = NULL;
    if (places == NULL)
        return;
    CHECK_OBJ(places, INSIDE_CONCURRENCY_MAGIC);
    if (atomic_fetch_sub(&places->references, 1) != 1)
        return;
    ASSERT(list_empty(&places->waiting));
    pthread_mutex_destroy(&places->lock);
    FREE_OBJ(places);
}

static bool places_take(struct inside_concurrency *places) {
    unsigned taken = atomic_load(&places->taken);
    while (taken < atomic_load(&places->most))
        if (atomic_compare_exchange_weak(&places->taken, &taken, taken + 1))
            return true;
    return false;
}

/* Who waits asks again: there may be room. */
static void places_call(struct inside_concurrency *places, const struct loop *loop) {
    if (!atomic_load(&places->asking))
        return;
    pthread_mutex_lock(&places->lock);
    atomic_store(&places->asking, false);
    waiters_wake(&places->waiting, loop);
    pthread_mutex_unlock(&places->lock);
}

static void places_give(struct inside_concurrency *places, const struct loop *loop) {
    atomic_fetch_sub(&places->taken, 1);
    places_call(places, loop);
}

static void places_limit(struct inside_concurrency *places, unsigned most,
                         const struct loop *loop) {
    if (atomic_exchange(&places->most, most) < most)
        places_call(places, loop);
}

/* Of one worker. */

static void wake_first(struct inside_queue *queue) {
    struct list_link *link = list_first(&queue->waiting);
    if (link == NULL)
        return;
    struct inside_turn *turn = CONTAINER_OF(link, struct inside_turn, link);
    list_remove(link);
    queue->count--;
    turn->called = true;
    loop_defer(queue->loop, turn->task);
}

/* A place has become free in some worker. */
static void queue_on_place(struct task *task) {
    wake_first(CONTAINER_OF(task, struct inside_queue, task));
}

static void queue_watch(struct inside_queue *queue) {
    struct inside_concurrency *places = queue->places;
    if (queue->waiter != NULL || list_empty(&queue->waiting))
        return;
    pthread_mutex_lock(&places->lock);
    waiter_add(&places->waiting, &queue->waiter, queue->mailbox, &queue->task);
    atomic_store(&places->asking, true);
    pthread_mutex_unlock(&places->lock);
}

void inside_queue_init(struct inside_queue *queue, struct inside_concurrency *places,
                       const struct service_settings *settings, struct loop *loop,
                       struct mailbox *mailbox) {
    *queue = (struct inside_queue){
        .places = places, .loop = loop, .mailbox = mailbox, .most = settings->queue_max};
    atomic_fetch_add(&places->references, 1);
    places_limit(places, settings->max_messages, loop);
    list_init(&queue->waiting);
    task_init(&queue->task, queue_on_place);
}

void inside_queue_release(struct inside_queue *queue) {
    ASSERT(list_empty(&queue->waiting));
    waiter_cancel(&queue->waiter, &queue->places->lock);
    task_cancel(&queue->task);
    inside_concurrency_release(&queue->places);
}

/* Of one message. */

void inside_turn_init(struct inside_turn *turn, struct task *task) {
    list_init(&turn->link);
    turn->called = turn->taken = false;
    turn->task = task;
}

static bool turn_try(struct inside_queue *queue, struct inside_turn *turn) {
    turn->taken = places_take(queue->places);
    return turn->taken;
}

/* One that was called too late keeps its turn. */
static bool turn_wait(struct inside_queue *queue, struct inside_turn *turn, bool called) {
    if (!list_empty(&turn->link))
        return true;
    if (!called && queue->count >= queue->most)
        return false;
    if (called)
        list_prepend(&queue->waiting, &turn->link);
    else
        list_append(&queue->waiting, &turn->link);
    queue->count++;
    return true;
}

static void turn_stop_waiting(struct inside_queue *queue, struct inside_turn *turn) {
    if (list_empty(&turn->link))
        return;
    list_remove(&turn->link);
    queue->count--;
}

/* A newcomer does not pass those that wait here. */
enum inside_turn_state inside_turn_take(struct inside_queue *queue, struct inside_turn *turn) {
    bool called = turn->called, first = called || list_empty(&queue->waiting);
    turn->called = false;
    if (!first || !turn_try(queue, turn)) {
        if (!turn_wait(queue, turn, called))
            return INSIDE_TURN_FULL;
        queue_watch(queue);
        /* A place that became free before we started to watch would not be reported. */
        if (!first || !turn_try(queue, turn))
            return INSIDE_TURN_WAITS;
    }
    turn_stop_waiting(queue, turn);
    wake_first(queue); /* there may be a place for the next one */
    return INSIDE_TURN_TAKEN;
}

void inside_turn_leave(struct inside_queue *queue, struct inside_turn *turn) {
    if (turn->called) {
        turn->called = false;
        task_cancel(turn->task);
        wake_first(queue); /* its turn passes to the next one */
    }
    turn_stop_waiting(queue, turn);
    if (!turn->taken)
        return;
    turn->taken = false;
    places_give(queue->places, queue->loop);
}
