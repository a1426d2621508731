#include "events/watch.h"

#include "base/assert.h"

#include <stdatomic.h>

struct event_watch *event_watch_new(uint64_t number, struct event_ring *const *rings) {
    struct event_watch *watch;
    ALLOC_OBJ(watch, EVENT_WATCH_MAGIC);
    watch->users = 1;
    watch->number = number;
    watch->rings = rings;
    return watch;
}

void event_watch_add(struct event_watch *watch, unsigned consumer, struct event_filter *filter,
                     uint64_t since) {
    CHECK_OBJ(watch, EVENT_WATCH_MAGIC);
    watch->filters[consumer] = event_filter_reference(filter);
    watch->since[consumer] = since;
}

struct event_watch *event_watch_reference(struct event_watch *watch) {
    if (watch == NULL)
        return NULL;
    CHECK_OBJ(watch, EVENT_WATCH_MAGIC);
    atomic_fetch_add(&watch->users, 1);
    return watch;
}

void event_watch_release(struct event_watch **watchp) {
    struct event_watch *watch = *watchp;
    *watchp = NULL;
    if (watch == NULL)
        return;
    CHECK_OBJ(watch, EVENT_WATCH_MAGIC);
    if (atomic_fetch_sub(&watch->users, 1) > 1)
        return;
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++)
        event_filter_release(&watch->filters[i]);
    FREE_OBJ(watch);
}
