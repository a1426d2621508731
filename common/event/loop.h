/*
 * The event loop of one thread: descriptors (epoll), timers, and tasks to run soon.
 *
 *     struct loop loop;
 *     loop_init(&loop);
 *     loop_add(&loop, &connection->event, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, on_event);
 *     while (!stop)
 *         loop_run_once(&loop);
 *
 * An `event` is embedded in the struct that it belongs to; the callback finds that struct with
 * CONTAINER_OF. With thousands of connections, most structs are not in the processor's caches. So
 * while the loop serves one event, it fetches the owner of the next event, and the memory around
 * the event after that. Sockets are registered once, edge-triggered, for both directions, so no
 * system call is needed to change the interest. Any callback may remove an event and free its
 * struct at any time.
 *
 * A `task` is a wake-up: loop_defer puts it into the queue that runs after the current batch of
 * events. Deferring a task that is already in the queue does nothing. Callbacks of input and output
 * store a result and defer the task of the one who waits for it. So state machines never call each
 * other.
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

enum io_status { IO_DONE, IO_WAIT, IO_END, IO_FAILED };

struct event {
    int fd; /* -1: not registered */
    void (*on_event)(struct event *event, uint32_t events);
    void *owner; /* for on_event; the loop fetches its memory beforehand; may be NULL */
};

struct task {
    struct list_link link;
    void (*run)(struct task *task);
};

enum { LOOP_BATCH = 256 };

struct loop {
    int epoll_fd;
    uint64_t now;             /* milliseconds of the monotonic clock, at the start of this round */
    uint64_t now_nanoseconds; /* the same time in nanoseconds */
    time_t wall;              /* seconds since 1970, at the start of this round */
    unsigned wall_milliseconds; /* of that second */
    struct timers timers;
    struct list_link tasks;
    int batch_count, batch_at;
    uint64_t looks; /* how often the loop has called epoll_wait */
    uint64_t seen;  /* `looks` of the last call that returned all pending events, all served now */
    struct epoll_event batch[LOOP_BATCH];
    void (*on_idle)(struct loop *loop, void *arg); /* before the loop sleeps; may be NULL */
    void *idle_arg;
};

bool loop_init(struct loop *loop);
void loop_release(struct loop *loop);

/* Waits for events, at most until the next timer is due. Then serves the events, the due timers and
 * the deferred tasks. */
void loop_run_once(struct loop *loop);

static inline void event_init(struct event *event) {
    event->fd = -1;
    event->on_event = NULL;
    event->owner = NULL;
}

bool loop_add(struct loop *loop, struct event *event, int fd, uint32_t interest,
              void (*on_event)(struct event *event, uint32_t events));
/* Stops watching. It does not close the descriptor; call it before the descriptor is closed. A close
 * alone does not stop the kernel while another process has a copy of the descriptor, and each new
 * process has one until its program runs. The kernel would report an event whose memory is gone. */
void loop_remove(struct loop *loop, struct event *event);
/* Watches a copy of the descriptor, which is closed again by loop_remove_copy: for one that is not the
 * caller's. Several may watch it at once, and whoever closes it touches nothing that is watched. */
bool loop_add_copy(struct loop *loop, struct event *event, int fd, uint32_t interest,
                   void (*on_event)(struct event *event, uint32_t events));
void loop_remove_copy(struct loop *loop, struct event *event);

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

/* Seconds of the monotonic clock, to measure how long something lasts. The wall clock may be set
 * back. */
static inline time_t loop_seconds(const struct loop *loop) {
    return (time_t)(loop->now / 1000);
}

static inline void loop_timer_after(struct loop *loop, struct timer *timer, uint64_t milliseconds) {
    timer_set(&loop->timers, timer, loop->now + milliseconds);
}

#endif
