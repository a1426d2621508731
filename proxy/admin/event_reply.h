/*
 * The reply that is a stream of events: what libmicrohttpd and the event stream (events/stream.h)
 * need of each other. While there are no events, libmicrohttpd suspends the connection, and no thread
 * waits for it. A consumer that does not read only fills its own queue.
 *
 *     struct MHD_Response *response = event_reply_new(connection, &consumer);
 *     ... MHD_queue_response, MHD_destroy_response: the end of the response lets the consumer leave
 *
 * Threads: those of libmicrohttpd.
 */
#ifndef RETORT_ADMIN_EVENT_REPLY_H
#define RETORT_ADMIN_EVENT_REPLY_H

#include <microhttpd.h>

struct event_consumer;

/* A consumer that takes no byte for EVENT_REPLY_PATIENCE seconds although some wait is closed. */
enum { EVENT_REPLY_PATIENCE = 60 };

/* Owns the consumer. NULL: no memory. */
struct MHD_Response *event_reply_new(struct MHD_Connection *connection,
                                     struct event_consumer **consumerp);

#endif
