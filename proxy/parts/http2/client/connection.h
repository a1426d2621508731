/*
 * A client's HTTP/2 connection: a session (http2/session.h) whose streams are exchanges.
 *
 *     struct http2_connection *connection = http2_connection_of_session(session);
 *     http2_connection_leave(connection);          an exchange is gone; the last one frees a lost
 *                                                  connection
 *
 * Threads: the worker's. Ownership: its own, until the socket is closed and no exchange is left.
 */
#ifndef RETORT_HTTP2_CLIENT_CONNECTION_H
#define RETORT_HTTP2_CLIENT_CONNECTION_H

#include "http2/client/http2.h"
#include "http2/session.h"

struct http2_connection {
    unsigned magic;
#define HTTP2_CONNECTION_MAGIC 0xc11e4702u
    struct http2_host *host;
    struct net_context *net;
    struct http2_session session;
    unsigned exchanges; /* that have not been finished, and tunnels */
    uint64_t requests;
    bool lost; /* the session is over */
    struct client_connection client;
};

static inline struct http2_connection *http2_connection_of_session(struct http2_session *session) {
    return CONTAINER_OF(session, struct http2_connection, session);
}
void http2_connection_leave(struct http2_connection *connection);

#endif
