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
#include "log/line.h"

/*
 * A ring of events: what one worker tells the thread of the stream. The worker never waits. When the ring
 * (base/ring.h) is full, the event is lost and counted for each consumer that it was for.
 *
 *     char *line = event_ring_begin(ring);                      the worker
 *     if (line == NULL)
 *         event_ring_lose(ring, 3, since);                      each consumer that it was for
 *     else
 *         head.length = write_line(line), event_ring_end(ring, &head);       up to LOG_LINE_MAX bytes
 *
 * Threads: one that writes and one that reads, without a lock.
 */

/* EVENT_CONSUMERS_MOST: each has a bit. EVENT_RING_LEAST: bytes of the smallest ring. */
enum { EVENT_CONSUMERS_MOST = 32, EVENT_RING_LEAST = 256 << 10 };

struct event_head {
    uint64_t number;    /* of the transaction */
    uint64_t watch;     /* of the filters that have chosen the consumers (events/watch.h) */
    uint32_t consumers; /* a bit for each */
    uint32_t length;    /* of the line */
};

struct event_ring;

struct event_ring *event_ring_new(size_t size);
void event_ring_free(struct event_ring **ringp);

char *event_ring_begin(struct event_ring *ring);
void event_ring_end(struct event_ring *ring, const struct event_head *head);
/* `since`: the number of the consumer's first watch, which tells it from others that had its bit. */
void event_ring_lose(struct event_ring *ring, unsigned consumer, uint64_t since);

/* False: there is none. */
bool event_ring_take(struct event_ring *ring, struct event_head *head, char line[LOG_LINE_MAX]);
/* How many events this consumer has lost so far. */
uint64_t event_ring_lost(const struct event_ring *ring, unsigned consumer, uint64_t since);

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
