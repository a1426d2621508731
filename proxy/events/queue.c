#include "events/queue.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

bool event_queue_init(struct event_queue *queue, size_t size) {
    *queue = (struct event_queue){.bytes = malloc(size), .size = size};
    return queue->bytes != NULL;
}

void event_queue_release(struct event_queue *queue) {
    free(queue->bytes);
    *queue = (struct event_queue){0};
}

bool event_queue_has_room(const struct event_queue *queue, size_t length) {
    return queue->size - queue->length >= length;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

void event_queue_put(struct event_queue *queue, struct slice text) {
    ASSERT(event_queue_has_room(queue, text.length));
    size_t at = (queue->begin + queue->length) % queue->size;
    size_t first = least(text.length, queue->size - at);
    memcpy(queue->bytes + at, text.base, first);
    memcpy(queue->bytes, text.base + first, text.length - first);
    queue->length += text.length;
}

size_t event_queue_take(struct event_queue *queue, char *bytes, size_t most) {
    size_t length = least(most, queue->length);
    size_t first = least(length, queue->size - queue->begin);
    memcpy(bytes, queue->bytes + queue->begin, first);
    memcpy(bytes + first, queue->bytes, length - first);
    queue->begin = (queue->begin + length) % queue->size;
    queue->length -= length;
    return length;
}
