/*
 * The context of one worker thread: its loop, its counters, its resolver and its spare read
 * buffers. The worker owns it; the transactions, connections and calls of the worker use it.
 *
 *     struct net_buffer *buffer = net_buffer_try(net);              NULL: there is no memory
 *     if (!net_buffer_make_room(net, &buffer, limit)) ...           the head is too large
 *     struct slice bytes = net_buffer_bytes(buffer);                what has come and is unused
 *     net_buffer_give(net, &buffer);
 *
 * Threads: one context per worker thread, used by no other.
 */
#ifndef RETORT_NET_CONTEXT_H
#define RETORT_NET_CONTEXT_H

#include "base/slice.h"
#include "base/spool.h"
#include "event/loop.h"
#include "net/address.h"
#include "net/counters.h"

struct memory_share;
struct own_networks;
struct resolver;
struct settings;

/* Read buffers go round: a connection holds one only while bytes wait in it, so that an idle
 * connection costs its struct and no more. The large ones are for bodies that pass by. */
enum {
    NET_BUFFER_SIZE = 16384,
    NET_BUFFERS_KEPT = 64,
    NET_BUFFER_LARGE = 65536,
    NET_BUFFERS_LARGE_KEPT = 32,
};

struct net_buffer {
    struct net_buffer *next_free;
    size_t capacity; /* NET_BUFFER_SIZE or NET_BUFFER_LARGE, or what a large head took */
    size_t begin, end;
    char data[];
};

struct net_buffers {
    struct net_buffer *first;
    unsigned count;
};

/* How much of client.memory is in use. NET_TIGHT: three quarters; bodies pass in small pieces.
 * NET_FULL: all of it; nothing new begins. */
enum net_pressure { NET_EASY, NET_TIGHT, NET_FULL };

/* What the operator's configuration says to this room. */
struct net_configuration {
    size_t memory;           /* bytes that the connections of all workers may hold */
    struct address *listens; /* where this proxy itself listens, with its admin plane */
    size_t listen_count;
    bool dns_ipv6;        /* names are asked for addresses of IPv6 as well */
    uint64_t dns_timeout; /* milliseconds, for all tries together; counts at the start */
    uint64_t dns_ttl_max; /* milliseconds that an address is remembered at most */
};

struct net_context {
    struct loop *loop;
    struct counters counters;
    struct resolver *resolver;
    struct settings *settings; /* the worker's current snapshot; a transaction keeps its own */
    struct own_networks *own_networks;   /* net/reach.h; NULL: not read yet */
    struct net_configuration configured; /* net_context_configure */
    struct net_buffers free_buffers, free_large_buffers;
    struct spool_blocks spare_blocks;
    size_t buffer_bytes;        /* of buffers that somebody has */
    struct memory_share *share; /* net/memory_share.h; NULL: nobody bounds what connections hold */
    enum net_pressure pressure;
    uint64_t told;     /* milliseconds of the loop's clock, when the share was last told */
    size_t told_bytes; /* buffer_bytes then */
};

void net_context_init(struct net_context *net, struct loop *loop);
/* Copies the configuration with its addresses. Called at the start and at each reload. */
void net_context_configure(struct net_context *net, const struct net_configuration *configuration);
void net_context_release(struct net_context *net);

/* Writes what the connections of this worker hold into its share, and sets `pressure`. It does so
 * at most once in a millisecond. Buffers that are taken in large numbers do it by themselves. */
void net_context_tell_memory(struct net_context *net);

struct net_buffer *net_buffer_take(struct net_context *net);
/* NULL when memory is exhausted. */
struct net_buffer *net_buffer_try(struct net_context *net);
/* Of NET_BUFFER_LARGE bytes; NULL when memory is exhausted. */
struct net_buffer *net_buffer_take_large(struct net_context *net);
void net_buffer_give(struct net_context *net, struct net_buffer **bufferp);
/* Makes room behind `end`: moves the bytes to the front, then doubles up to `limit` bytes. False
 * when the limit is reached or memory is exhausted. */
bool net_buffer_make_room(struct net_context *net, struct net_buffer **bufferp, size_t limit);

static inline struct slice net_buffer_bytes(const struct net_buffer *buffer) {
    return slice_make(buffer->data + buffer->begin, buffer->end - buffer->begin);
}

#endif
