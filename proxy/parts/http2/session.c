#include "http2/session.h"

#include "base/log.h"
#include "http2/closed.h"
#include "http2/frame.h"
#include "http2/input.h"

#include <string.h>

/* SESSION_TURN: two turns of a stream; then others get their turn, and the requests of this one are
 * read, one of which may be more urgent. SESSION_SPACE: of the outbox, for one turn of a stream whose
 * data is copied. LINGER_MOST: bytes that are read away. */
enum {
    SESSION_TURN = 120 * 1024,
    SESSION_TURNS = 256,
    SESSION_SPACE = 20 * 1024,
    SESSION_UNSENT = 128 * 1024,
    LINGER_MOST = 1 << 20,
};

/* Milliseconds: how long we read on behind GOAWAY, how long a client has to see the first GOAWAY of
 * a drain, and the times in which an empty budget is full again: by itself, and at the earliest by
 * what is answered. It is looked at every BUDGET_STEP, and when it is used up. */
enum {
    LINGER_TIME = 2000,
    DRAIN_TIME = 1000,
    BUDGET_TIME = 60000,
    BUDGET_TIME_ANSWERED = 5000,
    BUDGET_STEP = 1000,
};

static void session_on_ready(struct connection *socket);
static void session_on_timer(struct timer *timer);

static void session_on_task(struct task *task);

void http2_session_init(struct http2_session *session, struct http2_workspace *workspace,
                        const struct http2_session_class *class, enum http2_side side,
                        const struct http2_limits *limits, const struct http2_counts *counts) {
    INIT_OBJ(session, HTTP2_SESSION_MAGIC);
    session->class = class;
    session->workspace = workspace;
    session->net = workspace->net;
    session->side = side;
    session->limits = *limits;
    session->counts = *counts;
    session->peer.streams = UINT32_MAX;
    session->peer.window = HTTP2_WINDOW_DEFAULT;
    session->peer.frame = HTTP2_FRAME_SENT;
    session->peer.max_head = UINT32_MAX;
    session->next_out = 1;
    session->preface_seen = side == HTTP2_CLIENT;
    list_init(&session->streams);
    list_init(&session->starved);
    http2_schedule_init(&session->schedule);
    hpack_decoder_init(&session->decoder, HPACK_TABLE_DEFAULT);
    session->window = HTTP2_WINDOW_DEFAULT;
    session->send_window = HTTP2_WINDOW_DEFAULT;
    session->budget = limits->budget;
    session->budget_filled = session->started = session->idle_since = session->net->loop->now;
    timer_init(&session->timer, session_on_timer);
    task_init(&session->task, session_on_task);
}

static char *put_settings(const struct http2_session *session, char *at) {
    const struct http2_limits *limits = &session->limits;
    bool is_server = session->side == HTTP2_SERVER;
    char *head = at;
    at += HTTP2_FRAME_HEAD;
    if (is_server) {
        at = http2_frame_put_setting(at, HTTP2_SETTING_MAX_CONCURRENT_STREAMS, limits->streams);
        at = http2_frame_put_setting(at, HTTP2_SETTING_NO_RFC7540_PRIORITIES, 1);
    } else {
        at = http2_frame_put_setting(at, HTTP2_SETTING_ENABLE_PUSH, 0);
    }
    if (is_server && limits->tunnels)
        at = http2_frame_put_setting(at, HTTP2_SETTING_ENABLE_CONNECT_PROTOCOL, 1);
    at = http2_frame_put_setting(at, HTTP2_SETTING_INITIAL_WINDOW_SIZE, limits->stream_window);
    at =
        http2_frame_put_setting(at, HTTP2_SETTING_MAX_HEADER_LIST_SIZE, (uint32_t)limits->max_head);
    if (limits->frame != HTTP2_FRAME_SIZE_DEFAULT)
        at = http2_frame_put_setting(at, HTTP2_SETTING_MAX_FRAME_SIZE, limits->frame);
    http2_frame_write(head, (size_t)(at - head) - HTTP2_FRAME_HEAD, HTTP2_SETTINGS, 0, 0);
    return at;
}

/* What each side sends first (RFC 9113 §3.4). */
static void put_preface(struct http2_session *session) {
    char text[128], *at = text;
    if (session->side == HTTP2_CLIENT)
        at = slice_put(at, HTTP2_PREFACE);
    at = put_settings(session, at);
    if (session->limits.window > HTTP2_WINDOW_DEFAULT) {
        at = http2_frame_put_window_update(at, 0, session->limits.window - HTTP2_WINDOW_DEFAULT);
        session->window = session->limits.window;
    }
    http2_outbox_put(session, slice_make(text, (size_t)(at - text)));
}

void http2_session_start(struct http2_session *session, struct connection **socketp,
                         struct net_buffer **aheadp) {
    CHECK_OBJ(session, HTTP2_SESSION_MAGIC);
    session->socket = *socketp;
    *socketp = NULL;
    if (aheadp != NULL) {
        session->buffer = *aheadp;
        *aheadp = NULL;
    }
    connection_set_owner(session->socket, session_on_ready, session);
    /* What is urgent must not wait behind what the kernel holds already. */
    connection_limit_unsent(session->socket, SESSION_UNSENT);
    session->socket->readable = session->socket->writable = true;
    put_preface(session);
    http2_session_wake_at(session, session->started + session->limits.head_timeout);
    loop_defer(session->net->loop, &session->task);
}

void http2_session_wake_at(struct http2_session *session, uint64_t at) {
    if (at < session->timer.deadline)
        timer_set(&session->net->loop->timers, &session->timer, at);
}

void http2_session_send_soon(struct http2_session *session) {
    if (!session->working && session->phase != HTTP2_LOST)
        loop_defer(session->net->loop, &session->task);
}

void http2_session_tell_change(struct http2_session *session) {
    session->changed = true;
    http2_session_send_soon(session);
}

/* Ends */

static void put_goaway(struct http2_session *session, uint32_t last, enum http2_error error,
                       const char *why) {
    struct slice text = slice_from(why);
    size_t length = HTTP2_FRAME_HEAD + HTTP2_GOAWAY_SIZE + text.length;
    char *at = http2_outbox_room(session, length);
    http2_frame_put_goaway(at, last, error, text);
    http2_outbox_fill(session, length);
}

static void session_end(struct http2_session *session, enum http2_error error, const char *why) {
    if (session->phase != HTTP2_OPEN)
        return;
    put_goaway(session, session->last_taken, error, why);
    session->phase = HTTP2_ENDING;
    session->closing = true;
    session->failure = error;
    session->ends_at = session->net->loop->now + session->limits.send_timeout;
    http2_session_send_soon(session);
}

static void count_error(struct http2_session *session, enum http2_error error) {
    const struct http2_counts *counts = &session->counts;
    switch (error) {
    case HTTP2_ENHANCE_YOUR_CALM: (*counts->calmed)++; return;
    case HTTP2_FLOW_CONTROL_ERROR: (*counts->flow_control_errors)++; return;
    case HTTP2_COMPRESSION_ERROR: (*counts->compression_errors)++; return;
    default: (*counts->protocol_errors)++;
    }
}

void http2_session_fail(struct http2_session *session, enum http2_error error, const char *why) {
    if (session->phase != HTTP2_OPEN)
        return;
    struct slice name = http2_error_name(error);
    log_debug("HTTP/2: %s; the connection ends with %.*s", why, SLICE_PRINT(name));
    count_error(session, error);
    session_end(session, error, why);
}

void http2_session_broke(struct http2_session *session) {
    if (session->phase >= HTTP2_BROKEN)
        return;
    session->phase = HTTP2_BROKEN;
    session->closing = true;
    if (session->failure == HTTP2_NO_ERROR)
        session->failure = HTTP2_CANCEL;
    http2_outbox_release(session);
    http2_session_send_soon(session);
}

static void fill_budget(struct http2_session *session, uint64_t passed) {
    uint64_t most = session->limits.budget;
    uint64_t by_time = passed < BUDGET_TIME ? passed * most / BUDGET_TIME : most;
    uint64_t answered = passed < BUDGET_TIME ? passed * most / BUDGET_TIME_ANSWERED : most;
    if (answered > session->budget_due)
        answered = session->budget_due;
    session->budget_due -= (unsigned)answered;
    session->budget = http2_budget_add(session, session->budget, (unsigned)(by_time + answered));
    session->budget_filled += passed;
}

bool http2_session_spend(struct http2_session *session, unsigned units) {
    uint64_t passed = session->net->loop->now - session->budget_filled;
    if (session->budget < units || passed >= BUDGET_STEP)
        fill_budget(session, passed);
    if (session->budget < units) {
        http2_session_fail(session, HTTP2_ENHANCE_YOUR_CALM, "too much work without use");
        return false;
    }
    session->budget -= units;
    return session->phase == HTTP2_OPEN;
}

/* A stream that is under way does not end with its connection as a client sees it: "an endpoint ...
 * SHOULD send an initial GOAWAY frame with the last stream identifier set to 2^31-1" (RFC 9113
 * §6.8). */
void http2_session_drain(struct http2_session *session) {
    static const char ping[HTTP2_PING_SIZE] = "drain";
    if (session->phase != HTTP2_OPEN || session->closing)
        return;
    session->closing = true;
    if (session->side == HTTP2_SERVER && session->peer.known) {
        put_goaway(session, HTTP2_STREAM_MOST, HTTP2_NO_ERROR, NULL);
        http2_frame_put_ping(http2_outbox_room(session, HTTP2_FRAME_HEAD + HTTP2_PING_SIZE), false,
                             ping);
        http2_outbox_fill(session, HTTP2_FRAME_HEAD + HTTP2_PING_SIZE);
        session->draining = true;
        session->ends_at = session->net->loop->now + DRAIN_TIME;
        http2_session_wake_at(session, session->ends_at);
    }
    http2_session_send_soon(session);
}

static void drain_exactly(struct http2_session *session) {
    if (!session->draining)
        return;
    session->draining = false;
    put_goaway(session, session->last_taken, HTTP2_NO_ERROR, NULL);
    http2_session_send_soon(session);
}

void http2_session_on_pong(struct http2_session *session) {
    if (session->draining)
        drain_exactly(session);
    else
        http2_session_spend(session, HTTP2_COST_FRAME);
}

/* Work */

static void session_send(struct http2_session *session) {
    uint64_t enough = *session->counts.bytes_out + SESSION_TURN;
    struct http2_stream *stream;
    unsigned turns = 0;
    while (session->phase == HTTP2_OPEN &&
           (stream = http2_schedule_next(&session->schedule)) != NULL) {
        if (http2_outbox_left(session) < SESSION_SPACE && http2_outbox_flush(session) != IO_DONE)
            return;
        if (++turns > SESSION_TURNS || *session->counts.bytes_out >= enough) {
            loop_defer(session->net->loop, &session->task);
            break;
        }
        uint64_t before = stream->sent;
        bool more = session->class->on_turn(stream);
        if (http2_stream_is_over(stream) || stream->starved)
            continue;
        if (more)
            http2_schedule_sent(&session->schedule, stream, (size_t)(stream->sent - before));
        else
            http2_schedule_remove(&session->schedule, stream);
    }
    http2_outbox_flush(session);
}

/* The streams learn that their connection is over. A request that has not been answered may have
 * been processed, unless its head was never sent, or the other side said that it was not (GOAWAY). */
static void end_streams(struct http2_session *session) {
    LIST_FOR_EACH_SAFE (link, next, &session->streams) {
        struct http2_stream *stream = CONTAINER_OF(link, struct http2_stream, link);
        bool processed = session->side == HTTP2_SERVER || stream->we_began;
        stream->failed |= !stream->they_ended;
        http2_stream_forget(stream);
        session->class->on_over(stream, session->failure, processed);
    }
}

/* Closing a socket with unread bytes would reset the connection before the other side has seen
 * GOAWAY. */
static void session_linger(struct http2_session *session) {
    char scrap[4096];
    size_t got;
    while (session->phase == HTTP2_LINGERING && session->socket->readable) {
        enum io_status status = connection_read(session->socket, scrap, sizeof scrap, &got);
        if (status == IO_WAIT)
            return;
        session->lingered += got;
        if (status != IO_DONE || session->lingered > LINGER_MOST)
            http2_session_broke(session);
    }
}

static void session_finish_ending(struct http2_session *session) {
    enum io_status status = http2_outbox_flush(session);
    if (status != IO_DONE) {
        http2_session_wake_at(session, session->ends_at);
        return;
    }
    connection_shutdown(session->socket);
    session->phase = HTTP2_LINGERING;
    session->ends_at = session->net->loop->now + LINGER_TIME;
    timer_set(&session->net->loop->timers, &session->timer, session->ends_at);
    session_linger(session);
}

static void session_tell_closing(struct http2_session *session) {
    if (session->socket != NULL && session->class->on_closing != NULL)
        session->class->on_closing(session);
}

static void session_lose(struct http2_session *session) {
    end_streams(session);
    session_tell_closing(session);
    session->phase = HTTP2_LOST;
    if (session->socket != NULL)
        connection_cut(&session->socket);
    http2_outbox_release(session); /* which may be the one that others share */
    timer_cancel(&session->net->loop->timers, &session->timer);
    task_cancel(&session->task);
    session->class->on_lost(session);
}

void http2_session_abort(struct http2_session *session) {
    if (session->phase == HTTP2_LOST)
        return;
    ASSERT(!session->working);
    session_tell_closing(session);
    connection_abort(&session->socket);
    http2_session_broke(session);
    session_lose(session);
}

static void session_note_idle(struct http2_session *session) {
    if (session->stream_count > 0)
        return;
    if ((session->closing || session->peer.leaving) && !session->draining)
        session_end(session, HTTP2_NO_ERROR, NULL);
    else if (session->limits.idle_timeout != TIMER_NEVER)
        http2_session_wake_at(session, session->idle_since + session->limits.idle_timeout);
}

/* All that is left to do when nothing of the session runs further up the stack. */
static void session_settle(struct http2_session *session) {
    if (session->phase == HTTP2_OPEN)
        session_note_idle(session);
    if (session->phase == HTTP2_ENDING) {
        end_streams(session);
        session_finish_ending(session);
    }
    if (session->phase == HTTP2_BROKEN) {
        session_lose(session);
        return;
    }
    if (session->changed && session->class->on_change != NULL)
        session->class->on_change(session);
    session->changed = false;
}

static void session_work(struct http2_session *session) {
    session->working = true;
    if (session->phase == HTTP2_OPEN && session->socket->broken)
        http2_session_broke(session);
    if (session->phase == HTTP2_OPEN && http2_session_is_stuck(session))
        http2_outbox_flush(session);
    if (session->phase == HTTP2_OPEN)
        http2_input_read(session);
    if (session->phase == HTTP2_OPEN)
        session_send(session);
    if (session->phase == HTTP2_LINGERING)
        session_linger(session);
    session->working = false;
    session_settle(session);
}

static void session_on_task(struct task *task) {
    struct http2_session *session = CONTAINER_OF(task, struct http2_session, task);
    CHECK_OBJ(session, HTTP2_SESSION_MAGIC);
    if (session->socket != NULL && session->phase == HTTP2_OPEN &&
        !connection_watch(session->socket))
        http2_session_broke(session);
    session_work(session);
}

static void session_on_ready(struct connection *socket) {
    struct http2_session *session;
    CAST_OBJ(session, socket->event.owner, HTTP2_SESSION_MAGIC);
    session_work(session);
}

/* Times */

static void earlier(uint64_t *next, uint64_t at) {
    if (at < *next)
        *next = at;
}

/* True: it is time. */
static bool session_is_due(uint64_t at, uint64_t now, uint64_t *next) {
    if (at > now)
        earlier(next, at);
    return at <= now;
}

static void look_at_streams(struct http2_session *session, uint64_t now, uint64_t *next) {
    LIST_FOR_EACH_SAFE (link, following, &session->streams) {
        struct http2_stream *stream = CONTAINER_OF(link, struct http2_stream, link);
        if (stream->stuck_since != 0 &&
            session_is_due(stream->stuck_since + session->limits.send_timeout, now, next)) {
            http2_stream_break(stream, HTTP2_CANCEL);
            continue;
        }
        if (stream->deadline == TIMER_NEVER || !session_is_due(stream->deadline, now, next))
            continue;
        stream->deadline = TIMER_NEVER;
        session->class->on_deadline(stream);
        earlier(next, stream->deadline);
    }
}

/* The other side has not let the connection's window grow for too long. A client ends the streams
 * that wait for it, because those of others are not concerned. */
static void end_starved(struct http2_session *session) {
    if (session->side == HTTP2_SERVER) {
        http2_session_broke(session);
        return;
    }
    while (session->phase == HTTP2_OPEN && !list_empty(&session->starved))
        http2_stream_break(CONTAINER_OF(list_first(&session->starved), struct http2_stream, turn),
                           HTTP2_CANCEL);
}

static void look_at_session(struct http2_session *session, uint64_t now, uint64_t *next) {
    const struct http2_limits *limits = &session->limits;
    if (session->draining && session_is_due(session->ends_at, now, next))
        drain_exactly(session);
    if (session->stuck_since != 0 &&
        session_is_due(session->stuck_since + limits->send_timeout, now, next))
        http2_session_broke(session);
    else if (session->starved_since != 0 &&
             session_is_due(session->starved_since + limits->send_timeout, now, next))
        end_starved(session);
    else if (session->input_since != 0 &&
             session_is_due(session->input_since + limits->head_timeout, now, next))
        http2_session_fail(session, HTTP2_ENHANCE_YOUR_CALM, "a frame or a head came too slowly");
    else if (!session->acknowledged &&
             session_is_due(session->started + limits->head_timeout, now, next))
        http2_session_fail(session, HTTP2_SETTINGS_TIMEOUT, "the settings were not acknowledged");
    else if (session->stream_count == 0 && limits->idle_timeout != TIMER_NEVER &&
             session_is_due(session->idle_since + limits->idle_timeout, now, next))
        session_end(session, HTTP2_NO_ERROR, NULL);
}

static void session_on_timer(struct timer *timer) {
    struct http2_session *session = CONTAINER_OF(timer, struct http2_session, timer);
    CHECK_OBJ(session, HTTP2_SESSION_MAGIC);
    uint64_t now = session->net->loop->now, next = TIMER_NEVER;
    timer_set(&session->net->loop->timers, timer, TIMER_NEVER);
    session->working = true;
    if (session->phase == HTTP2_OPEN) {
        look_at_session(session, now, &next);
        look_at_streams(session, now, &next);
    } else if (session_is_due(session->ends_at, now, &next)) {
        http2_session_broke(session);
    }
    session->working = false;
    if (next != TIMER_NEVER)
        http2_session_wake_at(session, next);
    loop_defer(session->net->loop, &session->task);
}

void http2_session_release(struct http2_session *session) {
    CHECK_OBJ(session, HTTP2_SESSION_MAGIC);
    ASSERT(!session->working);
    session->phase = HTTP2_LOST;
    timer_cancel(&session->net->loop->timers, &session->timer);
    task_cancel(&session->task);
    http2_outbox_release(session);
    http2_input_release(session);
    if (session->socket != NULL)
        connection_cut(&session->socket);
    session->magic = 0;
}

uint64_t http2_session_shut_time(const struct http2_session *session) {
    uint64_t now = session->net->loop->now_nanoseconds;
    return session->shut_total + (session->shut_since == 0 ? 0 : now - session->shut_since);
}

bool http2_session_has_room(const struct http2_session *session) {
    uint32_t most = session->peer.streams;
    return session->phase == HTTP2_OPEN && !session->closing && session->stream_count < most &&
           session->next_out < HTTP2_STREAM_MOST - 1;
}

void http2_session_open(struct http2_session *session, struct http2_stream *stream) {
    http2_stream_add(session, stream, session->next_out);
    session->next_out += 2;
    http2_stream_want(stream);
}

void http2_fault_refuse(struct http2_session *session, uint32_t id, enum http2_error error) {
    char frame[HTTP2_FRAME_HEAD + 4];
    http2_frame_put_rst_stream(frame, id, error);
    http2_outbox_put(session, slice_make(frame, sizeof frame));
    http2_closed_note(session, id);
    (*session->counts.resets_out)++;
    http2_session_spend(session, HTTP2_COST_RESET);
}

/* "RST_STREAM frames MUST NOT be sent for a stream in the idle state" (RFC 9113 §6.4, in other words):
 * then the connection ends. */
void http2_fault_end(struct http2_session *session, uint32_t id, struct http2_fault fault) {
    struct http2_stream *stream = http2_stream_known(session, id);
    if (fault.error == HTTP2_NO_ERROR)
        return;
    if (!fault.of_stream || http2_closed_is_unopened(session, id))
        http2_session_fail(session, fault.error, fault.text);
    else if (stream != NULL)
        http2_stream_break(stream, fault.error);
    else
        http2_fault_refuse(session, id, fault.error);
}

/* The other side may say how urgent a stream is before it opens it, and servers should keep the most
 * recent PRIORITY_UPDATE until then (RFC 9218 §7.1). A few are kept, of streams that it may open
 * before others end. */
void http2_early_priority_keep(struct http2_session *session, uint32_t id, struct slice value) {
    unsigned more = session->limits.streams - session->stream_count;
    if (id % 2 == 0 || id <= session->last_in || (id - session->last_in) / 2 > more)
        return;
    struct http2_early_priority *early = session->early, *end = early + HTTP2_EARLY_PRIORITIES;
    while (early < end && early->id != id)
        early++;
    if (early == end) {
        early = &session->early[session->early_next];
        session->early_next = (session->early_next + 1) % HTTP2_EARLY_PRIORITIES;
    }
    early->id = id;
    http2_priority_parse(value, &early->priority);
    session->has_early = true;
}

void http2_early_priority_apply(struct http2_session *session, struct http2_stream *stream) {
    session->has_early = false;
    for (unsigned i = 0; i < HTTP2_EARLY_PRIORITIES; i++) {
        struct http2_early_priority *early = &session->early[i];
        if (early->id == stream->id)
            http2_stream_update_priority(stream, &early->priority);
        if (early->id <= stream->id)
            early->id = 0;
        session->has_early |= early->id != 0;
    }
}
