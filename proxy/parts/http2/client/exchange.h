/*
 * An exchange that HTTP/2 carries (client/exchange.h): a stream with its request body, its reply,
 * or its tunnel.
 *
 *     struct http2_exchange *exchange = http2_exchange_new(connection);
 *     ... http2_request_read fills in exchange->base ...
 *     http2_exchange_begin(exchange);           on_request is called
 *
 * The struct lives until the transaction has finished the exchange and the tunnel is closed.
 *
 * Threads: the worker's. Memory: exchanges go round in a list of the worker's.
 */
#ifndef RETORT_HTTP2_CLIENT_EXCHANGE_H
#define RETORT_HTTP2_CLIENT_EXCHANGE_H

#include "client/body_clock.h"
#include "http2/client/connection.h"

struct http2_exchange {
    struct exchange base;
    struct http2_connection *connection;
    struct http2_exchange *next_free;
    struct http2_stream stream;
    bool begun;    /* the transaction has it, or had */
    bool finished; /* the transaction has given it back */
    /* The request's body */
    struct source body;
    bool body_taken, expects_continue;
    struct body_clock clock;
    char websocket_key[24]; /* made for the origin */
    /* The reply */
    bool head_sent, has_reader, in_parts;
    struct reply reply; /* of what is left of it, if its body comes in parts */
    struct slice text;  /* of the parts of a body: what goes before the next of them */
    struct task reader_task;
    /* The tunnel; its magic is 0 while there is none. */
    struct duplex tunnel;
    bool tunnel_turn; /* it may write once, also if others wait */
    /* The members from here on are not set for a new exchange. */
    struct body_reader reader; /* if has_reader */
};

static inline struct http2_exchange *http2_exchange_of(struct exchange *exchange) {
    return CONTAINER_OF(exchange, struct http2_exchange, base);
}
static inline struct http2_exchange *http2_exchange_of_stream(struct http2_stream *stream) {
    return CONTAINER_OF(stream, struct http2_exchange, stream);
}

/* Makes an exchange with an empty request head. */
struct http2_exchange *http2_exchange_new(struct http2_connection *connection);
/* The request is there: calls on_request. */
void http2_exchange_begin(struct http2_exchange *exchange);
/* Nothing refers to the exchange any more, unless the transaction or a tunnel does. */
void http2_exchange_leave(struct http2_exchange *exchange);
/* The client has gone, or the stream was reset: tells the transaction. */
void http2_exchange_lost(struct http2_exchange *exchange);
/* Where a block of so many bytes can be made; good until the next call. */
char *http2_block(struct http2_host *host, size_t room);
/* The end of the block: puts it, with what the connection's first block begins with. */
void http2_exchange_put_block(struct http2_exchange *exchange, char *block, char *end, bool ended);

#endif
