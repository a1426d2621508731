/*
 * Request heads as they come from the socket: read, parsed, judged, and turned into exchanges.
 *
 *     if (!http1_request_head_read(connection)) ...      wait for more bytes
 */
#ifndef RETORT_CLIENT_HTTP1_REQUEST_HEAD_H
#define RETORT_CLIENT_HTTP1_REQUEST_HEAD_H

#include "client/http1/connection.h"

/* Reads and parses until a whole head has come, good or bad, and an exchange has begun. True as
 * well: there is no memory for one, which the client has been told, or the connection is lost. */
bool http1_request_head_read(struct http1_connection *connection);

#endif
