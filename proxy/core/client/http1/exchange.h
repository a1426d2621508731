/*
 * An exchange that HTTP/1 carries (client/exchange.h): its request body and its reply on the wire.
 *
 *     struct http1_exchange *exchange = http1_exchange_new(connection);
 *     ... the parser fills in exchange->base.request ...
 *     http1_exchange_begin(exchange);           on_request is called
 *
 * Threads: the worker's. Memory: exchanges go round in a list of the worker's.
 */
#ifndef RETORT_CLIENT_HTTP1_EXCHANGE_H
#define RETORT_CLIENT_HTTP1_EXCHANGE_H

#include "client/body_clock.h"
#include "client/http1/connection.h"
#include "http/chunked.h"
#include "http/framing.h"

struct http1_exchange {
    struct exchange base;
    struct http1_connection *connection;
    struct http1_exchange *next_free;
    bool keep_alive; /* the connection stays open behind the reply */
    /* the request's body */
    struct framing framing;
    struct source body;
    bool body_taken, body_in_use, body_ended, expects_continue;
    uint64_t body_left;      /* FRAMING_LENGTH */
    struct body_clock clock; /* its `got` is also what paces count */
    struct chunked_decoder chunked;
    /* the reply */
    struct slice parts[2]; /* head and extra still to be sent */
    unsigned frame_begin, frame_end;
    bool has_reader, use_chunked, first_chunk, end_framed;
    uint64_t chunk_left;
    struct slice last_chunk; /* behind it, once it is known to be the last but that */
    struct task reader_task;
    const struct slice *trailers;
    struct body *parts_body; /* sent in parts; NULL: it is not */
    const struct reply_part *next_part;
    unsigned parts_left;
    struct slice tail;
    /* The members from here on are not set for a new exchange. */
    struct body_reader reader; /* if has_reader */
    char frame[320];           /* made here: framing fields and the empty line, chunk heads */
};

static inline struct http1_exchange *http1_exchange_of(struct exchange *exchange) {
    return CONTAINER_OF(exchange, struct http1_exchange, base);
}

/* Makes an exchange with an empty request head, which the parser fills in. */
static inline struct http1_exchange *http1_exchange_new(struct http1_connection *connection) {
    struct http1_host *host = connection->host;
    struct http1_exchange *exchange = host->free_exchanges;
    if (exchange != NULL) {
        host->free_exchanges = exchange->next_free;
        host->free_exchange_count--;
    } else {
        exchange = xmalloc(sizeof *exchange);
    }
    /* All but the head, which its parser initialises, and what only some use. */
    enum { CLEARED = offsetof(struct http1_exchange, base.state) };
    memset((char *)exchange + CLEARED, 0, offsetof(struct http1_exchange, reader) - CLEARED);
    exchange->connection = connection;
    return exchange;
}
/* One for which on_request has not been called. */
void http1_exchange_drop(struct http1_exchange *exchange);
/* The request is there: calls on_request. */
void http1_exchange_begin(struct http1_exchange *exchange);
/* Writes a head that goes before the reply, or instead of it. False: it did not go out whole; what
 * of it went out is in *sent. */
bool http1_exchange_send_now(struct http1_exchange *exchange, struct slice head, size_t *sent);

#endif
