/*
 * The reply that is a stream of events: what libmicrohttpd and the event stream (events/stream.h)
 * need of each other. While there are no events, libmicrohttpd suspends the connection, and no thread
 * waits for it. A consumer that does not read only fills its own queue.
 *
 *     struct MHD_Response *response = event_reply_new(connection, &consumer, may_still, request);
 *     ... MHD_queue_response, MHD_destroy_response: the end of the response lets the consumer leave
 *
 * A reload may take a token or a certificate away. So the stream asks before each block of events,
 * and ends with the last block that its reader may have.
 *
 * Threads: those of libmicrohttpd.
 */
#ifndef RETORT_ADMIN_EVENT_REPLY_H
#define RETORT_ADMIN_EVENT_REPLY_H

#include <microhttpd.h>
#include <stdbool.h>

struct event_consumer;

/* A consumer that takes no byte for EVENT_REPLY_PATIENCE seconds although some wait is closed. */
enum { EVENT_REPLY_PATIENCE = 60 };

/* Owns the consumer. may_still(arg) is called until the request ends; NULL is
 * returned when there is no memory. */
struct MHD_Response *event_reply_new(struct MHD_Connection *connection,
                                     struct event_consumer **consumerp,
                                     bool (*may_still)(void *arg), void *arg);

#endif
