#include "net/context.h"

#include "base/assert.h"

void net_context_init(struct net_context *net, struct loop *loop) {
    memset(net, 0, sizeof *net);
    net->loop = loop;
}

static void free_all(struct net_buffers *buffers) {
    while (buffers->first != NULL) {
        struct net_buffer *next = buffers->first->next_free;
        free(buffers->first);
        buffers->first = next;
    }
    buffers->count = 0;
}

void net_context_release(struct net_context *net) {
    free_all(&net->free_buffers);
    free_all(&net->free_large_buffers);
    spool_blocks_release(&net->spare_blocks);
}

static struct net_buffer *take(struct net_buffers *free_ones) {
    struct net_buffer *buffer = free_ones->first;
    free_ones->first = buffer->next_free;
    free_ones->count--;
    return buffer;
}

static struct net_buffer *begin(struct net_buffer *buffer, size_t capacity) {
    buffer->capacity = capacity;
    buffer->next_free = NULL;
    buffer->begin = buffer->end = 0;
    return buffer;
}

struct net_buffer *net_buffer_take(struct net_context *net) {
    return begin(net->free_buffers.count > 0 ? take(&net->free_buffers)
                                             : xmalloc(sizeof(struct net_buffer) + NET_BUFFER_SIZE),
                 NET_BUFFER_SIZE);
}

struct net_buffer *net_buffer_try(struct net_context *net) {
    struct net_buffer *buffer = net->free_buffers.count > 0
                                    ? take(&net->free_buffers)
                                    : malloc(sizeof *buffer + NET_BUFFER_SIZE);
    return buffer == NULL ? NULL : begin(buffer, NET_BUFFER_SIZE);
}

struct net_buffer *net_buffer_take_large(struct net_context *net) {
    struct net_buffer *buffer = net->free_large_buffers.count > 0
                                    ? take(&net->free_large_buffers)
                                    : malloc(sizeof *buffer + NET_BUFFER_LARGE);
    return buffer == NULL ? NULL : begin(buffer, NET_BUFFER_LARGE);
}

static void give(struct net_buffers *free_ones, struct net_buffer *buffer, unsigned most) {
    if (free_ones->count >= most) {
        free(buffer);
        return;
    }
    buffer->next_free = free_ones->first;
    free_ones->first = buffer;
    free_ones->count++;
}

void net_buffer_give(struct net_context *net, struct net_buffer **bufferp) {
    struct net_buffer *buffer = *bufferp;
    *bufferp = NULL;
    if (buffer == NULL)
        return;
    if (buffer->capacity == NET_BUFFER_SIZE)
        give(&net->free_buffers, buffer, NET_BUFFERS_KEPT);
    else if (buffer->capacity == NET_BUFFER_LARGE)
        give(&net->free_large_buffers, buffer, NET_BUFFERS_LARGE_KEPT);
    else
        free(buffer);
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
