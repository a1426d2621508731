/*
 * The outbox: where replies wait while further requests of the same client stand in its buffer, so
 * that all of them leave with one write.
 *
 *     if (!http1_outbox_hold(connection, pieces + 1, count, &held))
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

/* True: requests wait behind the one that these bytes answer, and the bytes are held back for a
 * while; *held is how many they are. */
bool http1_outbox_hold(struct http1_connection *connection, const struct iovec *pieces, int count,
                       size_t *held);
/* Writes what is held, then pieces[1 .. count], of which *put bytes are taken; pieces[0] is room
 * for the former. more: something else is written at once. */
enum io_status http1_outbox_write(struct http1_connection *connection, struct iovec *pieces,
                                  int count, bool more, size_t *put);
/* Writes what is held. IO_WAIT: the rest waits in memory of its own. */
enum io_status http1_outbox_flush(struct http1_connection *connection);

#endif
