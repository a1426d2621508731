/*
 * A client's HTTP/1 connection: it reads a request head, hands an exchange to the transaction, and
 * goes on to the next request when that is finished.
 *
 *     IDLE: no byte of a request is there          timer: client.idle_timeout
 *     SILENT: nothing has ever come                timer: client.idle_timeout
 *     HEAD: a part of a head is there              timer: client.header_timeout, client.min_rate
 *     BUSY: an exchange is under way               timer: of its body or its reply, see there
 *     LINGERING: what the client still sends is read away before we close
 *
 *     http1_connection_serve(connection);          requests, one after the other
 *     http1_connection_lost(connection);           the socket is of no more use
 *
 * Threads: the worker's. Ownership: its own, until the socket is closed and no exchange is left.
 */
#ifndef RETORT_CLIENT_HTTP1_CONNECTION_H
#define RETORT_CLIENT_HTTP1_CONNECTION_H

#include "client/http1/http1.h"

enum http1_state { HTTP1_IDLE, HTTP1_SILENT, HTTP1_HEAD, HTTP1_BUSY, HTTP1_LINGERING };

struct http1_connection {
    unsigned magic;
#define HTTP1_CONNECTION_MAGIC 0xc11e4700u
    enum http1_state state;
    struct net_context *net;
    struct http1_host *host;
    struct connection *socket; /* NULL: closed, or taken over by a tunnel */
    struct net_buffer *buffer; /* bytes read and not used yet; NULL: none */
    struct http1_exchange *exchange;
    char *held_memory;   /* where what is held stands; NULL: in the outbox */
    struct slice held;   /* replies that leave with those to the requests behind them */
    size_t head_checked; /* bytes of the buffer known to hold no end of head */
    unsigned requests;
    bool serving;  /* http1_connection_serve is at work further up the stack */
    bool finished; /* no further request will be read */
    struct timer timer;
    struct task turn; /* requests wait that it was not this connection's turn to serve any more */
    /* A hit uses the members up to here, and with an access log also the client's address. They
     * stand together, so that they need few cache lines. */
    struct client_connection client;
    size_t lingered;     /* bytes */
    uint64_t head_since; /* milliseconds of the loop's clock; since the state is HEAD */
};

/* What one connection is served and sent before others get their turn: 1 MB and its head. */
enum { HTTP1_TURN_REQUESTS = 64, HTTP1_TURN_BYTES = (1024 + 16) * 1024 };

/* Sets the connection's one timer. */
static inline void http1_connection_arm(struct http1_connection *connection,
                                        uint64_t milliseconds) {
    loop_timer_after(connection->net->loop, &connection->timer, milliseconds);
}
static inline void http1_connection_disarm(struct http1_connection *connection) {
    timer_set(&connection->net->loop->timers, &connection->timer, TIMER_NEVER);
}
/* Serves requests one after the other until one has to wait, there is none, or others have their
 * turn. Exchanges that are finished within on_request come back here rather than calling deeper.
 * False: the connection is gone. */
bool http1_connection_serve(struct http1_connection *connection);
/* The socket is of no more use: tells the transaction, or goes. */
void http1_connection_lost(struct http1_connection *connection);
/* The client speaks HTTP/2 from its first byte: gives the socket and all that was read away. */
void http1_connection_hand_over(struct http1_connection *connection);
/* Bytes that nobody has read yet, or that may have come. */
static inline bool http1_connection_has_input(const struct http1_connection *connection) {
    return connection->socket->readable ||
           (connection->buffer != NULL && connection->buffer->begin < connection->buffer->end);
}

#endif
