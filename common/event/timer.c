#include "event/timer.h"

#include "base/assert.h"

void timers_init(struct timers *timers) {
    timers->heap = NULL;
    timers->count = timers->capacity = 0;
}

void timers_release(struct timers *timers) {
    free(timers->heap);
    timers_init(timers);
}

static void timer_place_at(struct timers *timers, size_t slot, struct timer_entry entry) {
    timers->heap[slot] = entry;
    entry.timer->slot = slot;
    entry.timer->key = entry.key;
}

static void sift_up(struct timers *timers, size_t slot, struct timer_entry entry) {
    while (slot > 1 && timers->heap[slot / 2].key > entry.key) {
        timer_place_at(timers, slot, timers->heap[slot / 2]);
        slot /= 2;
    }
    timer_place_at(timers, slot, entry);
}

static void sift_down(struct timers *timers, size_t slot, struct timer_entry entry) {
    for (;;) {
        size_t child = slot * 2;
        if (child > timers->count)
            break;
        if (child < timers->count && timers->heap[child + 1].key < timers->heap[child].key)
            child++;
        if (timers->heap[child].key >= entry.key)
            break;
        timer_place_at(timers, slot, timers->heap[child]);
        slot = child;
    }
    timer_place_at(timers, slot, entry);
}

static void timer_insert(struct timers *timers, struct timer *timer, uint64_t key) {
    if (timers->count + 1 >= timers->capacity) {
        timers->capacity = timers->capacity == 0 ? 64 : timers->capacity * 2;
        timers->heap = xrealloc(timers->heap, timers->capacity * sizeof *timers->heap);
    }
    timers->count++;
    sift_up(timers, timers->count, (struct timer_entry){key, timer});
}

void timer_take_out(struct timers *timers, struct timer *timer) {
    size_t slot = timer->slot;
    ASSERT(timers->heap[slot].timer == timer);
    timer->slot = 0;
    timer->key = TIMER_NEVER;
    struct timer_entry moved = timers->heap[timers->count--];
    if (slot > timers->count)
        return;
    if (slot > 1 && timers->heap[slot / 2].key > moved.key)
        sift_up(timers, slot, moved);
    else
        sift_down(timers, slot, moved);
}

void timer_place(struct timers *timers, struct timer *timer) {
    if (timer->slot == 0) {
        timer_insert(timers, timer, timer->deadline);
        return;
    }
    ASSERT(timers->heap[timer->slot].timer == timer);
    sift_up(timers, timer->slot, (struct timer_entry){timer->deadline, timer});
}

uint64_t timers_next(const struct timers *timers) {
    return timers->count == 0 ? TIMER_NEVER : timers->heap[1].key;
}

void timers_run(struct timers *timers, uint64_t now) {
    while (timers->count > 0 && timers->heap[1].key <= now) {
        struct timer *timer = timers->heap[1].timer;
        if (timer->deadline > now && timer->deadline != TIMER_NEVER) {
            sift_down(timers, 1, (struct timer_entry){timer->deadline, timer});
            continue;
        }
        timer_take_out(timers, timer);
        if (timer->deadline == TIMER_NEVER)
            continue;
        timer->deadline = TIMER_NEVER;
        timer->on_timeout(timer);
    }
}
