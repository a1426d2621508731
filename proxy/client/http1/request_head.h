/*
 * Request heads as they come from the socket: read, parsed, judged, and turned into exchanges.
 *
 *     if (http1_request_head_parse(connection)) ...      an exchange has begun, or was refused
 *     else http1_request_head_fill(connection);          reads more
 */
#ifndef RETORT_CLIENT_HTTP1_REQUEST_HEAD_H
#define RETORT_CLIENT_HTTP1_REQUEST_HEAD_H

#include "client/http1/connection.h"

/* True: the buffer held a whole head, good or bad, and an exchange has begun; or there is no memory
 * for one, which the client has been told. */
bool http1_request_head_parse(struct http1_connection *connection);
/* Reads once into the buffer. */
void http1_request_head_fill(struct http1_connection *connection);

#endif
