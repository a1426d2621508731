/*
 * The context of one worker thread: its loop, its counters, its resolver and its spare read
 * buffers. The worker owns it; the transactions, connections and calls of the worker use it.
 *
 *     struct net_buffer *buffer = net_buffer_try(net);              NULL: there is no memory
 *     if (!net_buffer_make_room(net, &buffer, limit)) ...           the head is too large
 *     struct slice bytes = net_buffer_bytes(buffer);                received bytes not used yet
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

struct pki_fetches;
struct mailbox;
struct memory_share;
struct name_reviewer;
struct own_connections;
struct own_networks;
struct resolver;
struct settings;
struct slow_addresses;

/* Read buffers are shared by the connections of a worker. A connection holds one only while bytes
 * wait in it, so an idle connection costs no more than its struct. Large buffers are for bodies. */
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

/* How much of client.memory is in use. NET_TIGHT: three quarters; bodies are passed on in small
 * pieces. NET_FULL: all of it; no new request begins. */
enum net_pressure { NET_EASY, NET_TIGHT, NET_FULL };

/* The options of the operator's configuration that the files in net/ use. */
struct net_configuration {
    size_t memory;           /* bytes that the connections of all workers may hold */
    struct address *listens; /* where this proxy itself listens, with its admin plane */
    size_t listen_count;
    uint64_t attempt_delay; /* milliseconds; net/connect_race.h; 0: addresses do not race */
    /* Of net/resolver.h, which reads them at its start and when it is told of a change. Times are
     * in milliseconds. */
    bool dns_ipv6;        /* look-ups ask for IPv6 addresses as well */
    uint64_t dns_timeout; /* for all tries together */
    unsigned dns_tries;   /* of each name server */
    uint64_t dns_ttl_max; /* an address is remembered no longer than this */
    uint64_t dns_negative_ttl_max;
    uint64_t dns_stale;          /* how long addresses serve beyond their time; 0: not at all */
    unsigned dns_names;          /* that are remembered */
    unsigned dns_client_lookups; /* of a client, under way at a time */
    bool dns_search_clients;     /* search domains are for clients' names too */
    char *const *dns_servers;    /* end with NULL; NULL or "system": those of the system */
    char *const *dns_search;     /* likewise; or "none" */
    const char *hosts_file;      /* NULL or "none": there is none */
    unsigned mark;               /* of the connections that are opened (SO_MARK); 0: none */
    bool transparent;            /* some listener is transparent: own_connections is kept */
};

struct net_context {
    struct loop *loop;
    struct counters counters;
    struct resolver *resolver;
    struct name_reviewer *reviewer; /* net/name_review.h; NULL: there is none */
    struct settings *settings;      /* the worker's current snapshot; a transaction keeps its own */
    struct own_connections *own_connections; /* of all workers; net/own_connections.h */
    struct own_networks *own_networks;       /* net/egress.h; NULL: not read yet */
    struct slow_addresses *slow_addresses;   /* net/address_order.h; NULL: none */
    uint64_t no_route_until[2];          /* of IPv4, of IPv6: milliseconds of the loop's clock */
    struct net_configuration configured; /* net_context_configure */
    struct net_buffers free_buffers, free_large_buffers;
    struct spool_blocks spare_blocks;
    struct mailbox *mailbox;     /* the worker's; NULL: there is none */
    struct pki_fetches *fetches; /* of the part pki, for handshakes that wait */
    struct list_link questions;  /* to helpers, that wait (identity/helper_question.h) */
    unsigned question_count;
    uint64_t questions_told;    /* milliseconds, when the log last said that one failed; 0: never */
    size_t buffer_bytes;        /* of all buffers in use, and net_context_hold */
    struct memory_share *share; /* net/memory_share.h; NULL: the memory has no limit */
    enum net_pressure pressure;
    uint64_t share_updated; /* milliseconds of the loop's clock at the last update of the share */
    size_t share_bytes;     /* buffer_bytes at that time */
    struct durations durations;
};

void net_context_init(struct net_context *net, struct loop *loop);
/* Copies the configuration with its addresses. Called at the start and at each reload. */
void net_context_configure(struct net_context *net, const struct net_configuration *configuration);
void net_context_release(struct net_context *net);

/* Writes the memory that the connections of this worker hold into its share, and sets `pressure`.
 * It does so at most once in a millisecond. net_buffer_take and its like also do it when the
 * buffers in use have grown by 256 KB since the last time. */
void net_context_tell_memory(struct net_context *net);

/* Takes a buffer of NET_BUFFER_SIZE bytes; draws on the reserve when memory is exhausted. */
struct net_buffer *net_buffer_take(struct net_context *net);
/* Like net_buffer_take, but returns NULL when memory is exhausted. */
struct net_buffer *net_buffer_try(struct net_context *net);
/* Takes a buffer of NET_BUFFER_LARGE bytes; NULL when memory is exhausted. */
struct net_buffer *net_buffer_take_large(struct net_context *net);
void net_buffer_give(struct net_context *net, struct net_buffer **bufferp);
/* Makes room behind `end`: moves the bytes to the front, or else doubles the buffer as long as it
 * holds less than `limit` bytes. False when the limit is reached or memory is exhausted. */
bool net_buffer_make_room(struct net_context *net, struct net_buffer **bufferp, size_t limit);
/* A protocol holds so many bytes of its own for a connection, or does no longer: they count as those
 * of buffers do. */
void net_context_hold(struct net_context *net, size_t bytes);
static inline void net_context_drop(struct net_context *net, size_t bytes) {
    net->buffer_bytes -= bytes;
}

static inline struct slice net_buffer_bytes(const struct net_buffer *buffer) {
    return slice_make(buffer->data + buffer->begin, buffer->end - buffer->begin);
}

#endif
