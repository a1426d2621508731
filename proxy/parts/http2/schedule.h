/*
 * The schedule: which stream of a session sends next (RFC 9218).
 *
 *     http2_schedule_add(&schedule, stream);
 *     while ((stream = http2_schedule_next(&schedule)) != NULL) ...
 *     http2_schedule_sent(&schedule, stream, bytes);
 *     http2_schedule_remove(&schedule, stream);
 *
 * A stream of a smaller urgency goes first. Of the same urgency:
 * - incremental ones take turns, a frame each (RFC 9218 §10);
 * - others go in the order of their ids, each until it has nothing to send or has sent
 *   HTTP2_BURST bytes; then it is the next one's turn, so that a large download does not keep small
 *   responses waiting;
 * - a stream whose client said nothing of its priority counts as incremental for that reason.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_SCHEDULE_H
#define RETORT_HTTP2_SCHEDULE_H

#include "base/list.h"
#include "http2/stream.h"

enum { HTTP2_URGENCIES = 8, HTTP2_BURST = 256 * 1024 };

struct http2_schedule {
    struct list_link levels[HTTP2_URGENCIES];
    unsigned filled; /* a bit for each level that has streams */
};

void http2_schedule_init(struct http2_schedule *schedule);
/* No effect if the stream is there already. */
void http2_schedule_add(struct http2_schedule *schedule, struct http2_stream *stream);
void http2_schedule_remove(struct http2_schedule *schedule, struct http2_stream *stream);
struct http2_stream *http2_schedule_next(struct http2_schedule *schedule);
/* The stream has had its turn and wants another one. */
void http2_schedule_sent(struct http2_schedule *schedule, struct http2_stream *stream,
                         size_t bytes);

static inline bool http2_schedule_is_empty(const struct http2_schedule *schedule) {
    return schedule->filled == 0;
}

#endif
