/*
 * A stream of a session: one request and its response, or a tunnel (RFC 9113 §5). The owner embeds
 * it.
 *
 *     http2_stream_init(&own->stream);                       in on_open, or before http2_session_open
 *     switch (http2_stream_read(stream, buffer, sizeof buffer, &got)) ...      as source_read
 *     http2_stream_want(stream);                             on_turn will be called
 *     room = http2_stream_room(stream);                      in on_turn: bytes of data that may go
 *     http2_stream_put_data(stream, pieces, count, bytes, ended);
 *     http2_stream_close(stream);                            from now on nothing is called for it
 *
 * Received bytes wait in the stream until they are read; its window bounds them, and grows again as
 * they are read. Bytes that wait stay readable after the other side has ended its direction.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_STREAM_H
#define RETORT_HTTP2_STREAM_H

#include "base/list.h"
#include "base/slice.h"
#include "base/spool.h"
#include "event/source.h"
#include "http2/frame.h"

/* Priorities (RFC 9218): how urgent a response is, and whether it is of use in pieces. */
enum { HTTP2_URGENCY_DEFAULT = 3, HTTP2_URGENCY_LEAST = 7 };

struct http2_priority {
    uint8_t urgency; /* 0..7; 0 is the most urgent */
    bool is_incremental;
};

/* Reads a Priority field, or the value in a PRIORITY_UPDATE frame. What it does not say has its
 * default. Members that are unknown or have another type or range are ignored (§4, §4.1); a value
 * that is no dictionary means the defaults (RFC 8941 §4.2). */
void http2_priority_parse(struct slice value, struct http2_priority *priority);

struct http2_session;

struct http2_stream {
    unsigned magic;
#define HTTP2_STREAM_MAGIC 0x48025712u
    bool we_began; /* our head has been put */
    bool we_ended, they_ended;
    bool head_seen;  /* the final one */
    bool failed;     /* reading gives SOURCE_FAILED when what came before has been read */
    bool is_ordered; /* its client wants it as a whole before those with higher ids */
    bool is_updated; /* a PRIORITY_UPDATE has said its priority */
    bool fair;       /* it has had its share of turns for now; see schedule.h */
    struct http2_session *session; /* NULL: over */
    uint32_t id;
    struct http2_stream *next; /* in its bucket */
    struct list_link link;     /* of session->streams */
    /* Output */
    struct list_link turn; /* in the schedule or among the starved */
    struct http2_priority priority;
    int64_t send_window;
    uint64_t sent;        /* bytes of data */
    uint64_t burst;       /* bytes since it has been the stream's turn */
    uint64_t stuck_since; /* since when its window lets nothing through; 0: it does, or need not */
    bool starved;         /* it waits for the session's window */
    /* Input */
    struct spool in;
    uint32_t window;     /* bytes that the other side may send */
    uint32_t window_due; /* that it will be told of */
    int64_t expected;    /* bytes of its body by its head; -1: not known */
    uint64_t received;
    uint64_t deadline; /* on_deadline is called then; TIMER_NEVER: it is not */
};

void http2_stream_init(struct http2_stream *stream);

/* Reads what has come, as a source does. WAIT: on_body will be called. */
enum source_status http2_stream_read(struct http2_stream *stream, char *buffer, size_t capacity,
                                     size_t *got);
/* The head says how long the body is. False: it has ended already, with another length. */
bool http2_stream_expect(struct http2_stream *stream, int64_t length);
void http2_stream_set_deadline(struct http2_stream *stream, uint64_t at);

/* The stream has something to send. */
void http2_stream_want(struct http2_stream *stream);
/* The bytes of data that may be put now; 0: wait, on_turn is called when there is room. Only in
 * on_turn, or where http2_stream_may_put is true. */
size_t http2_stream_room(struct http2_stream *stream);
/* May head and data be put right now, out of turn? Nobody else waits, and the outbox has room for so
 * many bytes. */
bool http2_stream_may_put(const struct http2_stream *stream, size_t bytes);
/* Does the socket take what was put before? */
bool http2_stream_is_flowing(const struct http2_stream *stream);
/* A block of HPACK: a head or trailers. It is cut into frames. */
void http2_stream_put_head(struct http2_stream *stream, struct slice block, bool ended);
/* At most http2_stream_room bytes. `ended`: they are the last. Few bytes are copied; many are
 * written from where they are, and only what the socket does not take is copied. */
void http2_stream_put_data(struct http2_stream *stream, const struct iovec *pieces, int count,
                           size_t bytes, bool ended);

/* Ends the stream, with a reset unless both sides have ended. */
void http2_stream_reset(struct http2_stream *stream, enum http2_error error);
/* The owner is done with the stream: resets it if need be, and frees what it holds. */
void http2_stream_close(struct http2_stream *stream);

static inline bool http2_stream_is_over(const struct http2_stream *stream) {
    return stream->session == NULL;
}

/* What the field Priority says (RFC 9218 §4). Before the stream wants a turn, or after. A
 * PRIORITY_UPDATE counts more. */
void http2_stream_set_priority(struct http2_stream *stream, struct slice value);

/* Inside http2/. */
void http2_stream_update_priority(struct http2_stream *stream,
                                  const struct http2_priority *priority);
/* So many received bytes need not wait any more. */
void http2_stream_credit(struct http2_stream *stream, uint32_t bytes);
struct http2_stream *http2_stream_find(const struct http2_session *session, uint32_t id);
/* A stream that both sides know. A client's is not one before the head of its request has been sent:
 * until then nothing may come for it. */
struct http2_stream *http2_stream_known(const struct http2_session *session, uint32_t id);
void http2_stream_add(struct http2_session *session, struct http2_stream *stream, uint32_t id);
/* The session forgets the stream: both sides have ended, or it was reset. */
void http2_stream_forget(struct http2_stream *stream);
/* As http2_stream_reset, and tells the owner (on_over). */
void http2_stream_break(struct http2_stream *stream, enum http2_error error);
/* The other side has ended its direction. */
void http2_stream_note_their_end(struct http2_stream *stream);
/* Both directions may have ended. */
void http2_stream_settle(struct http2_stream *stream);

#endif
