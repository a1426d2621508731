#include "http2/schedule.h"

#include "base/assert.h"

void http2_schedule_init(struct http2_schedule *schedule) {
    for (unsigned i = 0; i < HTTP2_URGENCIES; i++)
        list_init(&schedule->levels[i]);
    schedule->filled = 0;
}

/* Does the stream go on until it has nothing to send? */
static bool goes_on(const struct http2_stream *stream) {
    return stream->is_ordered && !stream->fair;
}

/* Those that go on stand in front, in the order of their ids. The others stand behind them, those
 * that have waited longest first. */
static void schedule_place(struct list_link *level, struct http2_stream *stream) {
    struct list_link *at = level;
    if (goes_on(stream))
        for (at = level->next; at != level; at = at->next) {
            const struct http2_stream *other = CONTAINER_OF(at, struct http2_stream, turn);
            if (!goes_on(other) || other->id > stream->id)
                break;
        }
    list_insert_before(at, &stream->turn);
}

void http2_schedule_add(struct http2_schedule *schedule, struct http2_stream *stream) {
    if (!list_empty(&stream->turn))
        return;
    unsigned level = stream->priority.urgency;
    ASSERT(level < HTTP2_URGENCIES);
    schedule_place(&schedule->levels[level], stream);
    schedule->filled |= 1u << level;
}

void http2_schedule_remove(struct http2_schedule *schedule, struct http2_stream *stream) {
    unsigned level = stream->priority.urgency;
    list_remove(&stream->turn);
    stream->burst = 0;
    if (list_empty(&schedule->levels[level]))
        schedule->filled &= ~(1u << level);
}

struct http2_stream *http2_schedule_next(struct http2_schedule *schedule) {
    if (schedule->filled == 0)
        return NULL;
    struct list_link *level = &schedule->levels[__builtin_ctz(schedule->filled)];
    return CONTAINER_OF(list_first(level), struct http2_stream, turn);
}

void http2_schedule_sent(struct http2_schedule *schedule, struct http2_stream *stream,
                         size_t bytes) {
    struct list_link *level = &schedule->levels[stream->priority.urgency];
    stream->burst += bytes;
    if (goes_on(stream) && stream->burst < HTTP2_BURST)
        return;
    if (goes_on(stream))
        stream->fair = true;
    list_remove(&stream->turn);
    list_append(level, &stream->turn);
}
