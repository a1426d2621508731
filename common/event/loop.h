/*
 * The event loop of one thread: descriptors (epoll), timers, and tasks to run soon.
 *
 *     struct loop loop;
 *     loop_init(&loop);
 *     loop_add(&loop, &connection->event, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, on_event);
 *     while (!stop)
 *         loop_run_once(&loop);
 *
 * An `event` is embedded in what it belongs to; the callback finds that with CONTAINER_OF. While
 * one event is served, the memory around the next but one is fetched, and that of the next one's
 * owner: of thousands of connections hardly any is in the processor's caches when its turn comes.
 * Sockets are registered once, edge-triggered, for both directions: no system call to change
 * interest. An event may be removed, and its struct freed, at any time, inside any callback.
 *
 * A `task` is a wake-up: loop_defer puts it into the queue that runs after the current batch of
 * events; deferring it again before it ran does nothing. Callbacks of input/output store a result
 * and defer the task of whoever waits for it, so that no two state machines ever call each other.
 *
 * Threads: all calls from the loop's own thread; other threads send messages (mailbox.h).
 */
#ifndef RETORT_EVENT_LOOP_H
#define RETORT_EVENT_LOOP_H

#include "base/list.h"
#include "event/timer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

struct event {
    int fd; /* -1: not registered */
    void (*on_event)(struct event *event, uint32_t events);
    void *owner; /* for on_event, which finds its memory fetched; may be NULL */
};

struct task {
    struct list_link link;
    void (*run)(struct task *task);
};

enum { LOOP_BATCH = 256 };

struct loop {
    int epoll_fd;
    uint64_t now;             /* milliseconds of the monotonic clock, at the start of this round */
    uint64_t now_nanoseconds; /* the same */
    time_t wall;              /* seconds since 1970, likewise */
    unsigned wall_milliseconds; /* of that second */
    struct timers timers;
    struct list_link tasks;
    int batch_count, batch_at;
    uint64_t looks; /* how often events were asked for */
    uint64_t seen;  /* the last time when all that were pending then have been served */
    struct epoll_event batch[LOOP_BATCH];
    void (*on_idle)(struct loop *loop, void *arg); /* before the loop sleeps; may be NULL */
    void *idle_arg;
};

bool loop_init(struct loop *loop);
void loop_release(struct loop *loop);

/* Waits for events, at most until the next timer, and serves all that is due. */
void loop_run_once(struct loop *loop);

static inline void event_init(struct event *event) {
    event->fd = -1;
    event->on_event = NULL;
    event->owner = NULL;
}

bool loop_add(struct loop *loop, struct event *event, int fd, uint32_t interest,
              void (*on_event)(struct event *event, uint32_t events));
/* Does not close the descriptor. */
void loop_remove(struct loop *loop, struct event *event);
/* The same without a system call, for a descriptor that is closed next and of which there is no
 * copy: the kernel stops watching those by itself. */
void loop_forget(struct loop *loop, struct event *event);

static inline void task_init(struct task *task, void (*run)(struct task *)) {
    list_init(&task->link);
    task->run = run;
}

static inline void loop_defer(struct loop *loop, struct task *task) {
    if (list_empty(&task->link))
        list_append(&loop->tasks, &task->link);
}

static inline void task_cancel(struct task *task) {
    list_remove(&task->link);
}

/* Reads the clocks anew, for code that runs long after the round began. */
void loop_update_time(struct loop *loop);

/* For how long something lasts: the wall clock may be set back. */
static inline time_t loop_seconds(const struct loop *loop) {
    return (time_t)(loop->now / 1000);
}

static inline void loop_timer_after(struct loop *loop, struct timer *timer, uint64_t milliseconds) {
    timer_set(&loop->timers, timer, loop->now + milliseconds);
}

#endif
