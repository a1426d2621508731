/*
 * A session: HTTP/2 on one connection (RFC 9113), seen from either side. It reads and writes frames,
 * keeps the streams, their windows and their turns, and bounds what the other side may make us do. It
 * does not know what a stream is for: its owner does, client/http2 or origin/http2.
 *
 *     http2_session_init(&own->session, &workspace, &own_class, HTTP2_SERVER, &limits,
 *                        &counts);
 *     http2_session_start(&own->session, &socket, &ahead);       our SETTINGS are sent with the rest
 *     ...
 *     on_open(session)                          -> &exchange->stream        a stream of the peer's
 *     on_head(stream, list, ended)                                          its head
 *         http2_stream_want(stream)                                         there is a reply to send
 *     on_turn(stream)
 *         http2_stream_put_head(stream, block, false);
 *         http2_stream_put_data(stream, pieces, count, bytes, true);
 *     http2_stream_close(stream);                                           at any time
 *     ...
 *     http2_session_release(&own->session);     after on_lost, or to break the connection
 *
 * What is put is committed: the session writes it in this order, and copies what the socket does not
 * take. So on_turn is only called while the socket takes bytes, and nothing else may be put then.
 *
 * Errors of a stream end the stream (RST_STREAM, on_over); errors of the connection end the
 * connection (GOAWAY, on_over for each stream, on_lost). The owner never sees a frame.
 *
 * The budget (`limits.budget`) is what the other side may cost us without use: streams that either
 * side resets, pings, settings, priorities, empty frames, windows that grow by a few bytes. Time
 * brings it back, and more of it where requests are answered. If nothing is left, the connection
 * ends with ENHANCE_YOUR_CALM. Resets of ours count as well, because a client can make us reset
 * (CVE-2025-8671) as it can reset itself (CVE-2023-44487). Answers alone bring nothing back without
 * time: a hit in the cache costs its client less than a reset costs an origin.
 *
 * Threads: the worker's. Times: milliseconds. Ownership: the struct is the owner's.
 */
#ifndef RETORT_HTTP2_SESSION_H
#define RETORT_HTTP2_SESSION_H

#include "http2/frame.h"
#include "http2/hpack.h"
#include "http2/outbox.h"
#include "http2/schedule.h"
#include "http2/stream.h"
#include "net/connection.h"

enum http2_side { HTTP2_SERVER, HTTP2_CLIENT };

enum {
    /* Frames of one head behind its first, if max_head does not ask for more; RFC 9113 §6.10 has no
     * bound. */
    HTTP2_CONTINUATIONS_LEAST = 8,
    HTTP2_STREAM_BUCKETS = 32,
    HTTP2_EARLY_PRIORITIES = 8, /* of streams that are not open yet */
    HTTP2_CUT_KEPT = 1024,      /* streams of which we know whether we ended them; a power of 2 */
    HTTP2_CLOGGED = 192 * 1024, /* bytes that wait while frames are read that we may answer */
    HTTP2_LATE_FRAMES = 1000,   /* for each stream that a client ends, and for all together: */
    HTTP2_LATE_MOST = 1000 * 1000,
    HTTP2_TURN_STREAMS = 64, /* that one connection may open before others have their turn */
    /* If bodies that wait leave less of our window, it is as good as shut: who is far away sends no more
     * than that in the time that an update takes to it. */
    HTTP2_WINDOW_SHUT = HTTP2_FRAME_SIZE_DEFAULT,
    HTTP2_FRAME_SENT = HTTP2_FRAME_SIZE_DEFAULT, /* the longest DATA and HEADERS that we send */
};

/* What takes from the budget, and what brings it back. */
enum {
    HTTP2_COST_FRAME = 1, /* a frame that moves nothing forward */
    HTTP2_COST_RESET = 2,
    HTTP2_GAIN_STREAM = 2, /* a stream that both sides have ended; a server's as time passes */
    /* Bytes of data for which the other side may send two window updates, or a PING to measure how
     * long they take. */
    HTTP2_UPDATE_WORTH = 2048,
    HTTP2_UPDATES_MOST = 65536,
};

/* What a session allows. It is copied. */
struct http2_limits {
    unsigned streams;       /* of the other side, at a time; 0 for a client */
    uint32_t stream_window; /* bytes of one body that may wait for its reader */
    uint32_t window;        /* bytes of all bodies */
    uint32_t frame;         /* bytes of one frame */
    size_t max_head;        /* bytes of a list of fields, as RFC 9113 §6.5.2 counts them */
    unsigned budget;        /* see above */
    bool tunnels;           /* extended CONNECT may be asked for (RFC 8441) */
    uint64_t head_timeout;  /* from the first byte of a frame or a head to its end */
    uint64_t send_timeout;  /* the other side takes nothing of what waits */
    uint64_t idle_timeout;  /* no stream is open; TIMER_NEVER: the owner looks after that */
};

/* What a PRIORITY_UPDATE said of a stream before its head came. */
struct http2_early_priority {
    uint32_t id; /* 0: of none */
    struct http2_priority priority;
};

/* What the other side allows (RFC 9113 §6.5.2). */
struct http2_peer {
    bool known;   /* its SETTINGS have come */
    bool leaving; /* its GOAWAY has come */
    bool tunnels;
    uint32_t streams; /* at a time */
    uint32_t window;  /* that a stream begins with */
    uint32_t frame;
    uint32_t max_head;
};

struct http2_session_class {
    const char *name;
    /* Server: the other side opens a stream. NULL: refused (REFUSED_STREAM). */
    struct http2_stream *(*on_open)(struct http2_session *session);
    /* A whole head: a request; a response or an interim response. False: it is malformed, and the
     * stream is reset (RFC 9113 §8.1.1); `ended`: no body follows. */
    bool (*on_head)(struct http2_stream *stream, struct hpack_list *list, bool ended);
    /* The fields behind the body. False: as above. */
    bool (*on_trailers)(struct http2_stream *stream, const struct hpack_list *list);
    /* http2_stream_read may find more: bytes, the end, or a failure. */
    void (*on_body)(struct http2_stream *stream);
    /* It is the stream's turn to send: puts a head, or about http2_stream_room bytes of data. True:
     * it has more to send; false: it wants no turn before the next http2_stream_want. */
    bool (*on_turn)(struct http2_stream *stream);
    /* The stream was reset by either side, or the connection is lost. The session has forgotten it.
     * `processed` is false when the other side says that it has done nothing for it. */
    void (*on_over)(struct http2_stream *stream, enum http2_error error, bool processed);
    /* stream->deadline has passed. */
    void (*on_deadline)(struct http2_stream *stream);
    /* The number of streams has fallen, or the other side's settings have changed, or its window
     * was used up and has grown, or it takes no new streams any more (session->closing). NULL: the
     * owner does not care. */
    void (*on_change)(struct http2_session *session);
    /* The socket is about to be closed. NULL: the owner does not care. */
    void (*on_closing)(struct http2_session *session);
    /* The connection is over: nothing is called any more, and http2_session_release may be. Not
     * called from within a function of the session that its owner has called. */
    void (*on_lost)(struct http2_session *session);
};

/* Where the session counts. */
struct http2_counts {
    uint64_t *bytes_in, *bytes_out;
    uint64_t *resets_in, *resets_out;
    uint64_t *refused;       /* streams beyond `limits.streams`, or that the owner refused */
    uint64_t *stream_errors; /* that the other side is to blame for */
    /* Connections that ended because of an error of the other side's. */
    uint64_t *protocol_errors, *flow_control_errors, *compression_errors;
    uint64_t *calmed; /* because the budget was used up */
};

enum http2_phase {
    HTTP2_OPEN,
    HTTP2_ENDING,    /* GOAWAY has been put; the streams are to be told */
    HTTP2_LINGERING, /* what still comes is read away, so that GOAWAY arrives */
    HTTP2_BROKEN,    /* the streams and the owner are to be told */
    HTTP2_LOST,
};

struct http2_session {
    unsigned magic;
#define HTTP2_SESSION_MAGIC 0x4802e551u
    const struct http2_session_class *class;
    struct http2_workspace *workspace;
    struct net_context *net;
    struct connection *socket; /* NULL: the connection is over */
    enum http2_side side;
    struct http2_limits limits;
    struct http2_peer peer;
    struct http2_counts counts;
    enum http2_phase phase;
    bool working;                    /* frames are being handled further up the stack */
    bool closing;                    /* no new streams: GOAWAY has been sent or received */
    bool draining;                   /* the GOAWAY that names the last stream is still to be sent */
    bool changed;                    /* class->on_change is to be called */
    bool preface_seen, acknowledged; /* their preface; our SETTINGS */
    enum http2_error failure;        /* why it ends; for the streams */
    /* Streams */
    struct http2_stream *buckets[HTTP2_STREAM_BUCKETS];
    struct list_link streams;
    unsigned stream_count; /* of both sides */
    uint32_t last_in;      /* the highest id that the other side has opened */
    uint32_t last_taken;   /* the highest of these that the owner may have seen */
    uint32_t next_out;     /* the id of the next stream that we open */
    /* The streams that we have ended, as bits: frames may be under way. */
    uint64_t cut[HTTP2_CUT_KEPT / 64];
    /* What may still come for streams that we ended, and costs nothing: frames without bytes of DATA, and
     * these bytes. */
    unsigned late;
    uint64_t late_bytes;
    /* Input */
    struct net_buffer *buffer;        /* NULL: nothing waits */
    bool in_data;                     /* the bytes of a DATA frame are arriving */
    struct http2_frame data;          /* it */
    struct http2_stream *data_stream; /* NULL: they are dropped */
    uint32_t data_left, data_padding; /* bytes of it */
    char *block; /* of a head that has begun; NULL: none has, or no byte of it has come */
    size_t block_length;
    bool in_block;                /* CONTINUATION must follow */
    struct http2_frame block_of;  /* the HEADERS frame of it */
    enum http2_error block_fault; /* that frame's, of its stream */
    unsigned continuations;
    unsigned opened_in_turn; /* streams */
    struct http2_early_priority early[HTTP2_EARLY_PRIORITIES];
    unsigned early_next; /* which of them the next one replaces */
    bool has_early;
    uint64_t input_since; /* since when a part of a frame waits; 0: none does */
    struct hpack_decoder decoder;
    uint32_t window;     /* bytes of bodies that the other side may send */
    uint32_t window_due; /* that it will be told of */
    uint64_t shut_since; /* nanoseconds: since when little of it is left; 0: more is */
    uint64_t shut_total; /* nanoseconds for which it was so, before that */
    /* Output */
    struct http2_outbox outbox;
    struct http2_schedule schedule;
    int64_t send_window;
    struct list_link starved; /* streams that wait for send_window */
    uint64_t starved_since;   /* 0: none does */
    bool size_update_sent;    /* HPACK's: our table has no entries */
    uint64_t stuck_since;     /* since when the other side takes nothing; 0: it does, or need not */
    /* Budget, in units; what answers may bring back of it; and when it was last filled */
    unsigned budget, budget_due;
    uint64_t budget_filled;
    unsigned updates_free; /* window updates and PINGs that our DATA frames may bring */
    struct timer timer;
    struct task task; /* sends what waits, or goes on reading */
    uint64_t started, idle_since;
    uint64_t ends_at; /* of a phase, or of draining */
    size_t lingered;  /* bytes */
    void *owner;
};

void http2_session_init(struct http2_session *session, struct http2_workspace *workspace,
                        const struct http2_session_class *class, enum http2_side side,
                        const struct http2_limits *limits, const struct http2_counts *counts);
/* Takes the connection and the bytes that were read from it (NULL: none). The first frames are read
 * when the caller has returned to the loop. */
void http2_session_start(struct http2_session *session, struct connection **socketp,
                         struct net_buffer **aheadp);
/* No new streams; open ones go on, and then the connection ends (RFC 9113 §6.8). */
void http2_session_drain(struct http2_session *session);
/* Ends the connection because of an error: GOAWAY, and all streams are over. */
void http2_session_fail(struct http2_session *session, enum http2_error error, const char *why);
/* Breaks the connection with a reset: on_over for each stream, and on_lost, before it returns. Not
 * from a function of the session's class. */
void http2_session_abort(struct http2_session *session);
void http2_session_release(struct http2_session *session);

/* For how many nanoseconds in all has our window of the connection let no body come, or little of it?
 * The other side is not to blame for that time. */
uint64_t http2_session_shut_time(const struct http2_session *session);
/* Client: may a stream be opened now? */
bool http2_session_has_room(const struct http2_session *session);
/* Client: opens a stream that the caller has initialised with http2_stream_init. Its head is to be
 * put in its first turn. */
void http2_session_open(struct http2_session *session, struct http2_stream *stream);

/* Inside http2/. */
/* Takes from the budget; false: nothing is left, and the connection is over. */
bool http2_session_spend(struct http2_session *session, unsigned units);
static inline unsigned http2_budget_add(const struct http2_session *session, unsigned to,
                                        unsigned units) {
    return session->limits.budget - to < units ? session->limits.budget : to + units;
}
/* Both sides have ended a stream. A client has opened it itself, so that the other side gains
 * nothing by it. */
static inline void http2_session_earn(struct http2_session *session) {
    unsigned *to = session->side == HTTP2_CLIENT ? &session->budget : &session->budget_due;
    *to = http2_budget_add(session, *to, HTTP2_GAIN_STREAM);
}
/* Data has been sent that the other side may answer by growing windows. Few bytes count if it was not
 * the window that made them few. */
static inline void http2_session_allow_updates(struct http2_session *session, size_t bytes,
                                               bool natural) {
    if (session->updates_free < HTTP2_UPDATES_MOST)
        session->updates_free += 2 * (unsigned)(bytes / HTTP2_UPDATE_WORTH + natural);
}
/* The other side answers data. False: too often, and the connection is over. */
static inline bool http2_session_take_answer(struct http2_session *session) {
    if (session->updates_free == 0)
        return http2_session_spend(session, HTTP2_COST_FRAME);
    session->updates_free--;
    return true;
}
/* Sends what waits, when the caller has returned to the loop. */
void http2_session_send_soon(struct http2_session *session);
/* The timer is due at `at` at the latest. */
void http2_session_wake_at(struct http2_session *session, uint64_t at);
/* The socket is of no more use. The streams and the owner are told when nothing of the session runs
 * further up the stack. */
void http2_session_broke(struct http2_session *session);
/* class->on_change is called soon. */
void http2_session_tell_change(struct http2_session *session);
/* The answer to our PING has come. */
void http2_session_on_pong(struct http2_session *session);
/* What the other side takes does not reach it: frames wait to be sent. */
static inline bool http2_session_is_stuck(const struct http2_session *session) {
    return session->outbox.stuck;
}
/* So many bytes of bodies need not wait any more: the window grows again. */
void http2_session_credit(struct http2_session *session, uint32_t bytes);
/* Tells the other side that the window has grown, if that is worth a frame. To be called when either
 * the window or what is due has changed. */
void http2_session_tell_window(struct http2_session *session);

/*
 * What a fault of the other side ends (RFC 9113 §5.4): its stream, by RST_STREAM, or the connection.
 *
 *     http2_fault_end(session, frame.stream, http2_frame_check(&frame, 16384));
 *
 * Threads: the worker's.
 */

/* What was wrong with a frame of that stream, if anything was. */
void http2_fault_end(struct http2_session *session, uint32_t id, struct http2_fault fault);
/* Resets a stream that the session does not know. */
void http2_fault_refuse(struct http2_session *session, uint32_t id, enum http2_error error);

/*
 * What PRIORITY_UPDATE said of streams that are not open yet (RFC 9218 §7.1).
 *
 *     http2_early_priority_keep(session, id, value);
 *     ...
 *     if (session->has_early)
 *         http2_early_priority_apply(session, stream);        it has been opened
 *
 * Threads: the worker's.
 */

/* No effect for a stream that can't be opened next. The last HTTP2_EARLY_PRIORITIES are kept. */
void http2_early_priority_keep(struct http2_session *session, uint32_t id, struct slice value);
void http2_early_priority_apply(struct http2_session *session, struct http2_stream *stream);

#endif
