#include "net/context.h"

#include "base/assert.h"
#include "net/address_order.h"
#include "net/memory_share.h"

void net_context_init(struct net_context *net, struct loop *loop) {
    memset(net, 0, sizeof *net);
    net->loop = loop;
    net->configured = (struct net_configuration){
        .attempt_delay = 250,
        .dns_timeout = 5000,
        .dns_tries = 3,
        .dns_ttl_max = 300 * 1000,
        .dns_names = 1024,
        .dns_client_lookups = 100,
        .hosts_file = "/etc/hosts",
    };
    list_init(&net->questions);
}

static void free_all(struct net_buffers *buffers) {
    while (buffers->first != NULL) {
        struct net_buffer *next = buffers->first->next_free;
        free(buffers->first);
        buffers->first = next;
    }
    buffers->count = 0;
}

static struct address *copy_addresses(const struct address *addresses, size_t count) {
    struct address *copy = xcalloc(count + 1, sizeof *copy);
    if (count > 0)
        memcpy(copy, addresses, count * sizeof *copy);
    return copy;
}

void net_context_configure(struct net_context *net, const struct net_configuration *configuration) {
    struct address *listens = copy_addresses(configuration->listens, configuration->listen_count);
    free(net->configured.listens);
    net->configured = *configuration;
    net->configured.listens = listens;
}

void net_context_release(struct net_context *net) {
    free(net->configured.listens);
    net->configured.listens = NULL;
    slow_addresses_free(&net->slow_addresses);
    free_all(&net->free_buffers);
    free_all(&net->free_large_buffers);
    spool_blocks_release(&net->spare_blocks);
}

static struct net_buffer *net_context_take(struct net_buffers *free_ones) {
    struct net_buffer *buffer = free_ones->first;
    free_ones->first = buffer->next_free;
    free_ones->count--;
    return buffer;
}

/* Rough estimates: the structs of a connection; the structs and the arena of a request. */
enum { CONNECTION_BYTES = 1024, REQUEST_BYTES = 24 * 1024 };
/* When this many more bytes of buffers are in use, the share is updated within the millisecond. */
enum { TELL_STEP = 256 * 1024 };

static size_t held_by(const struct net_context *net) {
    return net->buffer_bytes + net->spare_blocks.taken * SPOOL_BLOCK +
           net->counters.client_connections_open * CONNECTION_BYTES +
           net->counters.transactions_active * REQUEST_BYTES;
}

static void net_context_tell(struct net_context *net) {
    if (net->share == NULL)
        return;
    net->share_updated = net->loop->now;
    net->share_bytes = net->buffer_bytes;
    net->counters.client_memory = held_by(net);
    size_t all = memory_share_tell(net->share, held_by(net)), most = net->configured.memory;
    net->pressure = all >= most ? NET_FULL : all >= most - most / 4 ? NET_TIGHT : NET_EASY;
}

void net_context_tell_memory(struct net_context *net) {
    if (net->share_updated != net->loop->now)
        net_context_tell(net);
}

void net_context_hold(struct net_context *net, size_t bytes) {
    net->buffer_bytes += bytes;
    if (net->buffer_bytes > net->share_bytes + TELL_STEP)
        net_context_tell(net);
}

static struct net_buffer *net_context_begin(struct net_context *net, struct net_buffer *buffer,
                                            size_t capacity) {
    net_context_hold(net, capacity);
    buffer->capacity = capacity;
    buffer->next_free = NULL;
    buffer->begin = buffer->end = 0;
    return buffer;
}

struct net_buffer *net_buffer_take(struct net_context *net) {
    return net_context_begin(net,
                             net->free_buffers.count > 0
                                 ? net_context_take(&net->free_buffers)
                                 : xmalloc(sizeof(struct net_buffer) + NET_BUFFER_SIZE),
                             NET_BUFFER_SIZE);
}

struct net_buffer *net_buffer_try(struct net_context *net) {
    struct net_buffer *buffer = net->free_buffers.count > 0
                                    ? net_context_take(&net->free_buffers)
                                    : malloc(sizeof *buffer + NET_BUFFER_SIZE);
    return buffer == NULL ? NULL : net_context_begin(net, buffer, NET_BUFFER_SIZE);
}

struct net_buffer *net_buffer_take_large(struct net_context *net) {
    struct net_buffer *buffer = net->free_large_buffers.count > 0
                                    ? net_context_take(&net->free_large_buffers)
                                    : malloc(sizeof *buffer + NET_BUFFER_LARGE);
    return buffer == NULL ? NULL : net_context_begin(net, buffer, NET_BUFFER_LARGE);
}

static void net_context_give(struct net_buffers *free_ones, struct net_buffer *buffer,
                             unsigned most) {
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
    net->buffer_bytes -= buffer->capacity;
    if (buffer->capacity == NET_BUFFER_SIZE)
        net_context_give(&net->free_buffers, buffer, NET_BUFFERS_KEPT);
    else if (buffer->capacity == NET_BUFFER_LARGE)
        net_context_give(&net->free_large_buffers, buffer, NET_BUFFERS_LARGE_KEPT);
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
    net->buffer_bytes += capacity;
    larger->next_free = NULL;
    larger->begin = 0;
    larger->end = length;
    memcpy(larger->data, buffer->data, length);
    net_buffer_give(net, bufferp);
    *bufferp = larger;
    return true;
}
