/*
 * HTTP/2 toward clients (RFC 9113): the second protocol behind client/exchange.h. A connection
 * carries many exchanges at a time, each on a stream of its own.
 *
 *     http2_host_init(&host, &clients);
 *     http2_adopt(&host, &arrival);               ALPN said h2, or the bytes begin with the preface
 *     ... clients.on_request is called for each request ...
 *     clients_abort(&clients);
 *     http2_host_release(&host);
 *
 * What a client could gain by
 * HTTP/2 that HTTP/1.1 does not give, and what bounds it:
 * - Much work for few bytes: many streams at once, streams that are reset, heads that compress well.
 *   client.http2_streams, the session's budget (http2/session.h), client.max_head.
 * - Memory that we hold for it: bodies that nobody reads, replies that it does not take.
 *   client.http2_window, client.http2_connection_window; replies stay in the cache's memory.
 * - Names and values that another protocol would read differently: http2/fields.h.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_CLIENT_HTTP2_H
#define RETORT_HTTP2_CLIENT_HTTP2_H

#include "client/clients.h"
#include "http2/client/head_blocks.h"
#include "http2/outbox.h"

struct http2_exchange;

/* What all HTTP/2 connections of a worker share. */
struct http2_host {
    struct clients *clients;
    struct http2_workspace workspace;
    struct http2_exchange *free_exchanges;
    unsigned free_exchange_count;
    struct head_blocks head_blocks;
    char *block; /* where heads are encoded; see http2_block */
    size_t block_room;
};

void http2_host_init(struct http2_host *host, struct clients *clients);
void http2_host_release(struct http2_host *host);
/* Takes a connection that is there already (client/clients.h). */
void http2_adopt(struct http2_host *host, const struct client_arrival *arrival);

#endif
