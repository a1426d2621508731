/*
 * A ring of events: what one worker tells the thread of the event stream. The worker never waits.
 * When the ring is full, the event is lost and counted for each consumer that it was for.
 *
 *     char *line = event_ring_begin(ring);                      the worker
 *     if (line == NULL)
 *         event_ring_lose(ring, 3, since);                      each consumer that it was for
 *     else {
 *         head.length = write_line(line);                       up to LOG_LINE_MAX bytes
 *         event_ring_end(ring, &head);
 *     }
 *
 *     while (event_ring_take(ring, &head, line))                the thread of the stream
 *         ... head.length bytes at line ...
 *
 * An event is in the ring (base/ring.h) as a whole or not at all.
 *
 * Threads: one that writes and one that reads, without a lock.
 */
#ifndef RETORT_EVENTS_RING_H
#define RETORT_EVENTS_RING_H

#include "log/line.h"

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

#endif
