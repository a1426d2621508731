/*
 * The queue of a consumer of the event stream: text that waits to be read, whole events at a time.
 *
 *     if (!event_queue_init(&queue, size)) ...                     no memory
 *     if (event_queue_has_room(&queue, length))
 *         event_queue_put(&queue, text);                           pieces of it
 *     size_t got = event_queue_take(&queue, bytes, sizeof bytes);
 *     event_queue_release(&queue);
 *
 * Threads: one at a time.
 */
#ifndef RETORT_EVENTS_QUEUE_H
#define RETORT_EVENTS_QUEUE_H

#include "base/slice.h"

struct event_queue {
    char *bytes;
    size_t size, begin, length; /* `length` bytes wait from `begin`, and on from 0 behind the end */
};

bool event_queue_init(struct event_queue *queue, size_t size);
void event_queue_release(struct event_queue *queue);
bool event_queue_has_room(const struct event_queue *queue, size_t length);
/* There is room. */
void event_queue_put(struct event_queue *queue, struct slice text);
size_t event_queue_take(struct event_queue *queue, char *bytes, size_t most);

#endif
