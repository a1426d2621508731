#include "net/context.h"

#include "base/assert.h"

void net_context_init(struct net_context *net, struct loop *loop) {
    memset(net, 0, sizeof *net);
    net->loop = loop;
}

void net_context_release(struct net_context *net) {
    while (net->free_buffers != NULL) {
        struct net_buffer *next = net->free_buffers->next_free;
        free(net->free_buffers);
        net->free_buffers = next;
    }
    net->free_buffer_count = 0;
}

struct net_buffer *net_buffer_take(struct net_context *net) {
    struct net_buffer *buffer = net->free_buffers;
    if (buffer != NULL) {
        net->free_buffers = buffer->next_free;
        net->free_buffer_count--;
    } else {
        buffer = xmalloc(sizeof *buffer + NET_BUFFER_SIZE);
        buffer->capacity = NET_BUFFER_SIZE;
    }
    buffer->next_free = NULL;
    buffer->begin = buffer->end = 0;
    return buffer;
}

void net_buffer_give(struct net_context *net, struct net_buffer **bufferp) {
    struct net_buffer *buffer = *bufferp;
    *bufferp = NULL;
    if (buffer == NULL)
        return;
    if (buffer->capacity != NET_BUFFER_SIZE || net->free_buffer_count >= NET_BUFFERS_KEPT) {
        free(buffer);
        return;
    }
    buffer->next_free = net->free_buffers;
    net->free_buffers = buffer;
    net->free_buffer_count++;
}

bool net_buffer_make_room(struct net_context *net, struct net_buffer **bufferp, size_t limit) {
    struct net_buffer *buffer = *bufferp;
    size_t length = buffer->end - buffer->begin;
    if (buffer->end < buffer->capacity)
        return true;
    if (buffer->begin > 0) {
        memmove(buffer->data, buffer->data + buffer->begin, length);
        buffer->begin = 0;
        buffer->end = length;
        return true;
    }
    if (length >= limit)
        return false;
    size_t capacity = buffer->capacity * 2;
    struct net_buffer *larger = malloc(sizeof *larger + capacity);
    if (larger == NULL)
        return false;
    larger->capacity = capacity;
    larger->next_free = NULL;
    larger->begin = 0;
    larger->end = length;
    memcpy(larger->data, buffer->data, length);
    net_buffer_give(net, bufferp);
    *bufferp = larger;
    return true;
}
