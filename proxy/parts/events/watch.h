/*
 * A watch: the filters of all consumers of the event stream at one moment, with the rings that
 * workers write to. Whenever a consumer comes or goes, the stream makes a new watch and sends it to
 * the workers; without consumers it sends NULL.
 *
 *     struct event_watch *watch = event_watch_new(number, rings);
 *     event_watch_add(watch, 3, filter, since);              the consumer with the bit 1 << 3
 *     ... each worker takes a reference ...
 *     event_watch_release(&watch);
 *
 * A bit belongs to one consumer after the other; events carry the number of their watch, which tells
 * whose they are, and losses are counted with the number of the consumer's first watch.
 *
 * Threads: constant once it is sent; references are counted.
 */
#ifndef RETORT_EVENTS_WATCH_H
#define RETORT_EVENTS_WATCH_H

#include "events/filter.h"
#include "events/ring.h"

struct event_watch {
    unsigned magic;
#define EVENT_WATCH_MAGIC 0xe4e43a7cu
    _Atomic unsigned users;
    uint64_t number;
    struct event_ring *const *rings;                    /* one for each worker; the stream's */
    struct event_filter *filters[EVENT_CONSUMERS_MOST]; /* referenced; NULL: no consumer */
    uint64_t since[EVENT_CONSUMERS_MOST];               /* the first watch of the consumer */
};

struct event_watch *event_watch_new(uint64_t number, struct event_ring *const *rings);
void event_watch_add(struct event_watch *watch, unsigned consumer, struct event_filter *filter,
                     uint64_t since);
struct event_watch *event_watch_reference(struct event_watch *watch); /* NULL: NULL */
void event_watch_release(struct event_watch **watchp);

#endif
