/*
 * The event stream: transactions that have ended, as server-sent events (WHATWG HTML, 9.2), for
 * consumers of the admin plane.
 *
 *     struct event_stream *stream = event_stream_new(&demand);
 *     struct event_consumer *consumer = event_stream_join(stream, &filter);   NULL: there are enough
 *     event_consumer_bind(consumer, fd, wake, arg);
 *     ssize_t got = event_consumer_read(consumer, bytes, sizeof bytes, pause);
 *     event_consumer_leave(&consumer);
 *     event_stream_end(stream, 500);                     consumers read what is left, and then the end
 *     event_stream_free(&stream);                        after the workers, and all consumers
 *
 * The workers' taps write into rings, one for each (events/part.c). A thread takes the events from
 * there every EVENT_TICK and puts them into the queue of each consumer that they are for. What finds
 * no room is lost; the consumer is told how many, where they would have stood, as soon as there is
 * room to tell it:
 *
 *     id: 6d1fc58e0000002a                 the transaction's id
 *     data: {"time":1764012345.678,...}    a line of the JSON access log
 *
 *     event: lost
 *     data: {"lost":17}
 *
 * Without consumers there is no watch in the workers, and the thread sleeps. Events of one worker
 * come in their order; those of several may be out of order by as much as a tick.
 *
 * Threads: any; one lock guards the consumers, and workers never take it. `wake` and `pause` are
 * called under the lock, so that no wake comes before its pause: they must not call back.
 */
#ifndef RETORT_EVENTS_STREAM_H
#define RETORT_EVENTS_STREAM_H

#include "events/watch.h"

#include <sys/types.h>

enum { EVENT_TICK = 20 /* milliseconds */ };

struct event_stream;
struct event_consumer;

struct event_demand {
    unsigned workers;
    unsigned consumers; /* at most; 0: there is no stream */
    size_t queue;       /* bytes that may wait for each consumer, and in each worker's ring */
    uint64_t heartbeat; /* milliseconds without an event, after which a consumer gets a comment */
    void *context;
    /* Hands a watch to all workers, without waiting; each takes a reference. */
    void (*publish)(void *context, struct event_watch *watch);
    /* Waits until the workers have what was published, or do not answer. */
    void (*await)(void *context);
};

struct event_numbers {
    unsigned consumers; /* now */
    uint64_t sent;      /* events that were put into queues */
    uint64_t lost, refused;
};

struct event_stream *event_stream_new(const struct event_demand *demand);
/* All transactions that end after the return are seen. Owns the filter. NULL: there are as many
 * consumers as may be, or no memory is left, or the stream has ended. */
struct event_consumer *event_stream_join(struct event_stream *stream, struct event_filter **filter);
void event_stream_numbers(struct event_stream *stream, struct event_numbers *numbers);
/* Takes no more consumers, and ends the thread. Waits for consumers that read to the end, up to
 * `patience` milliseconds. */
void event_stream_end(struct event_stream *stream, unsigned patience);
void event_stream_free(struct event_stream **streamp);

/* `fd`: the consumer's socket, which is watched for its end; it stays open until the consumer has
 * left. */
void event_consumer_bind(struct event_consumer *consumer, int fd, void (*wake)(void *arg),
                         void *arg);
/* Bytes that were copied; 0: there are none, `pause` was called with the consumer's `arg`, and
 * `wake` will be when there are some; -1: the end. */
ssize_t event_consumer_read(struct event_consumer *consumer, char *bytes, size_t most,
                            void (*pause)(void *arg));
void event_consumer_leave(struct event_consumer **consumerp);

#endif
