/*
 * The outbox: where replies wait while further requests of the same client stand in its buffer, so
 * that all of them leave with one write.
 *
 *     if (!http1_outbox_is_worth_it(connection) ||
 *         !http1_outbox_hold(connection, pieces + 1, count, &held))
 *         status = http1_outbox_write(connection, pieces, count, false, &put);
 *     ...
 *     http1_outbox_flush(connection);                  no further request is served for now
 *
 * A worker has one, which belongs to the connection whose requests are just being read; what the
 * socket does not take then moves to memory of the connection's own, and no further request is read
 * before it is gone.
 */
#ifndef RETORT_CLIENT_HTTP1_OUTBOX_H
#define RETORT_CLIENT_HTTP1_OUTBOX_H

#include "client/http1/connection.h"

/* Requests wait behind the one that is being answered. */
static inline bool http1_outbox_is_worth_it(const struct http1_connection *connection) {
    return connection->serving && connection->buffer != NULL &&
           connection->buffer->begin < connection->buffer->end && connection->held_memory == NULL;
}
/* True: the bytes are held back for a while; *held is how many they are. False: there is no room
 * for them. */
bool http1_outbox_hold(struct http1_connection *connection, const struct iovec *pieces, int count,
                       size_t *held);
/* Writes what is held, then pieces[1 .. count], of which *put bytes are taken; pieces[0] is room
 * for the former. more: something else is written at once. */
enum io_status http1_outbox_write(struct http1_connection *connection, struct iovec *pieces,
                                  int count, bool more, size_t *put);
/* As http1_outbox_flush, where something is held. */
enum io_status http1_outbox_flush_held(struct http1_connection *connection);
/* Writes what is held. IO_WAIT: the rest waits in memory of its own. */
static inline enum io_status http1_outbox_flush(struct http1_connection *connection) {
    return connection->held.length == 0 ? IO_DONE : http1_outbox_flush_held(connection);
}

#endif
