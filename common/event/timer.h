/*
 * Timers: each timer calls a function at a given time of the loop's clock, in milliseconds.
 *
 *     timer_init(&connection->timer, on_idle_timeout);
 *     timer_set(&loop->timers, &connection->timer, loop->now + 60000);
 *     timer_set(&loop->timers, &connection->timer, loop->now + 60000);   postponed: one store only
 *     timer_cancel(&loop->timers, &connection->timer);                   before the struct is freed
 *
 * The timers are in a binary heap. Most calls postpone a timer: each request moves the deadline of
 * its connection. Such a call only stores the new deadline in the timer. The heap is updated when
 * the old deadline is reached. TIMER_NEVER switches a timer off in the same cheap way.
 *
 * Threads: the loop's thread only. Callbacks may set and cancel any timer.
 */
#ifndef RETORT_EVENT_TIMER_H
#define RETORT_EVENT_TIMER_H

#include <stddef.h>
#include <stdint.h>

#define TIMER_NEVER UINT64_MAX

struct timer {
    uint64_t deadline;
    uint64_t key; /* of its entry in the heap; TIMER_NEVER: it has no entry */
    size_t slot;  /* in the heap, counted from 1; 0: not in the heap */
    void (*on_timeout)(struct timer *timer);
};

struct timer_entry {
    uint64_t key; /* at most the timer's deadline */
    struct timer *timer;
};

struct timers {
    struct timer_entry *heap; /* heap[1..count] */
    size_t count, capacity;
};

void timers_init(struct timers *timers);
void timers_release(struct timers *timers);

static inline void timer_init(struct timer *timer, void (*on_timeout)(struct timer *)) {
    timer->deadline = timer->key = TIMER_NEVER;
    timer->slot = 0;
    timer->on_timeout = on_timeout;
}

/* For timer_set alone: puts the timer into the heap, or moves it to its earlier deadline there. */
void timer_place(struct timers *timers, struct timer *timer);
/* For timer_cancel alone. */
void timer_take_out(struct timers *timers, struct timer *timer);

static inline void timer_cancel(struct timers *timers, struct timer *timer) {
    timer->deadline = TIMER_NEVER;
    if (timer->slot != 0)
        timer_take_out(timers, timer);
}

static inline void timer_set(struct timers *timers, struct timer *timer, uint64_t deadline) {
    timer->deadline = deadline;
    if (deadline < timer->key)
        timer_place(timers, timer);
}

/* The time when the next callback may be due; TIMER_NEVER when the heap is empty. */
uint64_t timers_next(const struct timers *timers);
/* Calls on_timeout of all timers that are due. */
void timers_run(struct timers *timers, uint64_t now);

#endif
