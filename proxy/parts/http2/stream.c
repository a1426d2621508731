#include "http2/stream.h"

#include "http/structured.h"
#include "http2/closed.h"
#include "http2/frame.h"
#include "http2/session.h"

static const struct http2_priority default_priority = {HTTP2_URGENCY_DEFAULT, false};

static void note_member(struct http2_priority *priority, const struct structured_member *member) {
    if (slice_equal(member->key, SLICE("u"))) {
        bool good = member->type == STRUCTURED_INTEGER && member->number >= 0 &&
                    member->number <= HTTP2_URGENCY_LEAST;
        priority->urgency = good ? (uint8_t)member->number : HTTP2_URGENCY_DEFAULT;
    } else if (slice_equal(member->key, SLICE("i"))) {
        priority->is_incremental = member->type == STRUCTURED_BOOLEAN && member->number != 0;
    }
}

void http2_priority_parse(struct slice value, struct http2_priority *priority) {
    struct slice rest = slice_trim(value);
    struct structured_member member;
    enum structured_status status;
    *priority = default_priority;
    while ((status = structured_next(&rest, &member)) == STRUCTURED_MEMBER)
        note_member(priority, &member);
    if (status == STRUCTURED_BAD)
        *priority = default_priority;
}

/* Bytes that a stream may put in one turn: so many leave with one write. */
enum { STREAM_TURN = 60 * 1024 };
/* Frames that may come for a stream behind its end, on a client's side: a server that has answered
 * says RST_STREAM if it does not want the rest of the request, and may grow its window before. */
enum { LATE_AFTER_END = 4 };

void http2_stream_init(struct http2_stream *stream) {
    INIT_OBJ(stream, HTTP2_STREAM_MAGIC);
    list_init(&stream->link);
    list_init(&stream->turn);
    spool_init(&stream->in);
    http2_priority_parse(SLICE(""), &stream->priority);
    stream->expected = -1;
    stream->deadline = TIMER_NEVER;
}

static struct http2_stream **stream_bucket(struct http2_session *session, uint32_t id) {
    return &session->buckets[(id >> 1) % HTTP2_STREAM_BUCKETS];
}

struct http2_stream *http2_stream_find(const struct http2_session *session, uint32_t id) {
    struct http2_stream *stream = *stream_bucket((struct http2_session *)(uintptr_t)session, id);
    while (stream != NULL && stream->id != id)
        stream = stream->next;
    return stream;
}

struct http2_stream *http2_stream_known(const struct http2_session *session, uint32_t id) {
    struct http2_stream *stream = http2_stream_find(session, id);
    bool known = stream != NULL && (stream->we_began || session->side == HTTP2_SERVER);
    return known ? stream : NULL;
}

void http2_stream_add(struct http2_session *session, struct http2_stream *stream, uint32_t id) {
    struct http2_stream **bucket = stream_bucket(session, id);
    CHECK_OBJ(stream, HTTP2_STREAM_MAGIC);
    stream->session = session;
    stream->id = id;
    /* Until our SETTINGS are acknowledged, theirs may be the default. */
    stream->window = session->limits.stream_window;
    if (!session->acknowledged && stream->window < HTTP2_WINDOW_DEFAULT)
        stream->window = HTTP2_WINDOW_DEFAULT;
    stream->send_window = session->peer.window;
    http2_closed_forget(session, id);
    spool_share(&stream->in, &session->net->spare_blocks);
    stream->next = *bucket;
    *bucket = stream;
    list_append(&session->streams, &stream->link);
    session->stream_count++;
}

static void take_from_turns(struct http2_stream *stream) {
    struct http2_session *session = stream->session;
    if (stream->starved) {
        list_remove(&stream->turn);
        if (list_empty(&session->starved))
            session->starved_since = 0;
    } else if (!list_empty(&stream->turn)) {
        http2_schedule_remove(&session->schedule, stream);
    }
    stream->starved = false;
}

void http2_stream_forget(struct http2_stream *stream) {
    struct http2_session *session = stream->session;
    struct http2_stream **at = stream_bucket(session, stream->id);
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    take_from_turns(stream);
    list_remove(&stream->link);
    session->stream_count--;
    if (session->data_stream == stream)
        session->data_stream = NULL;
    /* What waits is the owner's to read, and no longer counts for the connection. */
    http2_session_credit(session, (uint32_t)stream->in.length);
    stream->session = NULL;
    if (session->stream_count == 0)
        session->idle_since = session->net->loop->now;
    http2_session_tell_change(session);
}

void http2_stream_reset(struct http2_stream *stream, enum http2_error error) {
    struct http2_session *session = stream->session;
    char frame[HTTP2_FRAME_HEAD + 4];
    if (session == NULL)
        return;
    uint32_t id = stream->id;
    bool idle = session->side == HTTP2_CLIENT && !stream->we_began;
    stream->failed |= !stream->they_ended;
    http2_closed_note(session, id);
    http2_stream_forget(stream); /* what waited makes room for more bytes that may be under way */
    if (!stream->they_ended && !idle)
        http2_closed_expect(session, stream->window);
    else if (!idle && session->side == HTTP2_CLIENT)
        http2_closed_expect_frames(session, LATE_AFTER_END);
    if (idle) /* "MUST NOT be sent for a stream in the idle state" (RFC 9113 §6.4) */
        return;
    http2_frame_put_rst_stream(frame, id, error);
    http2_outbox_put(session, slice_make(frame, sizeof frame));
    (*session->counts.resets_out)++;
    http2_session_send_soon(session);
}

void http2_stream_break(struct http2_stream *stream, enum http2_error error) {
    struct http2_session *session = stream->session;
    (*session->counts.stream_errors)++;
    http2_stream_reset(stream, error);
    session->class->on_over(stream, error, true);
    http2_session_spend(session, HTTP2_COST_RESET);
}

/* A server that has answered does not wait for the rest of the request: "a server MAY request that
 * the client abort transmission of a request without error by sending a RST_STREAM with an error
 * code of NO_ERROR" (RFC 9113 §8.1). */
void http2_stream_close(struct http2_stream *stream) {
    struct http2_session *session = stream->session;
    if (session != NULL) {
        bool answered = stream->we_ended && session->side == HTTP2_SERVER;
        http2_stream_reset(stream, answered ? HTTP2_NO_ERROR : HTTP2_CANCEL);
    }
    spool_release(&stream->in);
    stream->magic = 0;
}

void http2_stream_settle(struct http2_stream *stream) {
    if (!stream->we_ended || !stream->they_ended)
        return;
    http2_session_earn(stream->session);
    http2_stream_forget(stream);
}

/* Input */

void http2_stream_note_their_end(struct http2_stream *stream) {
    stream->they_ended = true;
    if (stream->expected >= 0 && stream->received != (uint64_t)stream->expected) {
        stream->failed = true;
        http2_stream_break(stream, HTTP2_PROTOCOL_ERROR); /* RFC 9113 §8.1.1 */
        return;
    }
    stream->session->class->on_body(stream);
    http2_stream_settle(stream);
}

static void tell_window(struct http2_session *session, uint32_t id, uint32_t bytes) {
    char frame[HTTP2_FRAME_HEAD + 4];
    http2_frame_put_window_update(frame, id, bytes);
    http2_outbox_put(session, slice_make(frame, sizeof frame));
    http2_session_send_soon(session);
}

static void note_shut(struct http2_session *session) {
    uint64_t now = session->net->loop->now_nanoseconds, since = session->shut_since;
    bool shut = session->window < HTTP2_WINDOW_SHUT;
    if (shut == (since != 0))
        return;
    session->shut_total += shut ? 0 : now - since;
    session->shut_since = shut ? now : 0;
}

/* Few bytes are not worth a frame, unless the other side has no more of them left. Bytes that wait
 * for their readers take their part of the window, so what can be due at most shrinks with what is
 * left: a fixed share of the whole window might never come together. */
void http2_session_tell_window(struct http2_session *session) {
    uint32_t due = session->window_due;
    if (due > 0 && due >= session->window && session->phase == HTTP2_OPEN) {
        tell_window(session, 0, due);
        session->window += due;
        session->window_due = 0;
    }
    note_shut(session);
}

void http2_session_credit(struct http2_session *session, uint32_t bytes) {
    session->window_due += bytes;
    http2_session_tell_window(session);
}

void http2_stream_credit(struct http2_stream *stream, uint32_t bytes) {
    struct http2_session *session = stream->session;
    stream->window_due += bytes;
    if (!stream->they_ended && stream->window_due >= session->limits.stream_window / 2) {
        tell_window(session, stream->id, stream->window_due);
        stream->window += stream->window_due;
        stream->window_due = 0;
    }
    http2_session_credit(session, bytes);
}

enum source_status http2_stream_read(struct http2_stream *stream, char *buffer, size_t capacity,
                                     size_t *got) {
    CHECK_OBJ(stream, HTTP2_STREAM_MAGIC);
    *got = spool_read(&stream->in, buffer, capacity);
    if (*got > 0) {
        if (stream->session != NULL)
            http2_stream_credit(stream, (uint32_t)*got);
        return SOURCE_DATA;
    }
    if (stream->failed)
        return SOURCE_FAILED;
    return stream->they_ended ? SOURCE_END : SOURCE_WAIT;
}

bool http2_stream_expect(struct http2_stream *stream, int64_t length) {
    stream->expected = length;
    return !stream->they_ended || length < 0 || stream->received == (uint64_t)length;
}

void http2_stream_set_deadline(struct http2_stream *stream, uint64_t at) {
    stream->deadline = at;
    if (stream->session != NULL)
        http2_session_wake_at(stream->session, at);
}

/* Output */

void http2_stream_want(struct http2_stream *stream) {
    struct http2_session *session = stream->session;
    if (session == NULL || stream->starved || session->phase != HTTP2_OPEN)
        return;
    http2_schedule_add(&session->schedule, stream);
    http2_session_send_soon(session);
}

/* The stream waits until the connection's window grows. */
static void starve(struct http2_session *session, struct http2_stream *stream) {
    http2_schedule_remove(&session->schedule, stream);
    list_append(&session->starved, &stream->turn);
    stream->starved = true;
    if (session->starved_since != 0)
        return;
    session->starved_since = session->net->loop->now;
    http2_session_wake_at(session, session->starved_since + session->limits.send_timeout);
}

static void change_priority(struct http2_stream *stream, const struct http2_priority *priority) {
    struct http2_session *session = stream->session;
    bool waits = session != NULL && !stream->starved && !list_empty(&stream->turn);
    if (waits)
        http2_schedule_remove(&session->schedule, stream);
    stream->priority = *priority;
    stream->is_ordered = !priority->is_incremental;
    if (waits)
        http2_schedule_add(&session->schedule, stream);
}

void http2_stream_update_priority(struct http2_stream *stream,
                                  const struct http2_priority *priority) {
    stream->is_updated = true;
    change_priority(stream, priority);
}

void http2_stream_set_priority(struct http2_stream *stream, struct slice value) {
    struct http2_priority priority;
    if (stream->is_updated)
        return;
    http2_priority_parse(value, &priority);
    change_priority(stream, &priority);
}

size_t http2_stream_room(struct http2_stream *stream) {
    struct http2_session *session = stream->session;
    if (session == NULL || session->phase != HTTP2_OPEN)
        return 0;
    if (stream->send_window <= 0) {
        if (stream->stuck_since == 0) {
            stream->stuck_since = session->net->loop->now;
            http2_session_wake_at(session, stream->stuck_since + session->limits.send_timeout);
        }
        return 0;
    }
    if (session->send_window <= 0) {
        starve(session, stream);
        return 0;
    }
    int64_t room =
        stream->send_window < session->send_window ? stream->send_window : session->send_window;
    return room < STREAM_TURN ? (size_t)room : STREAM_TURN;
}

bool http2_stream_is_flowing(const struct http2_stream *stream) {
    const struct http2_session *session = stream->session;
    return session != NULL && session->phase == HTTP2_OPEN && !http2_session_is_stuck(session);
}

bool http2_stream_may_put(const struct http2_stream *stream, size_t bytes) {
    const struct http2_session *session = stream->session;
    return session != NULL && session->phase == HTTP2_OPEN &&
           http2_schedule_is_empty(&session->schedule) && http2_outbox_left(session) >= bytes;
}

static void note_end(struct http2_stream *stream, bool ended) {
    if (!ended)
        return;
    stream->we_ended = true;
    stream->stuck_since = 0;
    take_from_turns(stream);
    http2_stream_settle(stream);
}

void http2_stream_put_head(struct http2_stream *stream, struct slice block, bool ended) {
    struct http2_session *session = stream->session;
    if (session == NULL || session->phase != HTTP2_OPEN)
        return;
    stream->we_began = true;
    enum http2_frame_type type = HTTP2_HEADERS;
    unsigned flags = ended ? HTTP2_END_STREAM : 0;
    do {
        size_t length = block.length < session->peer.frame ? block.length : session->peer.frame;
        unsigned last = length == block.length ? HTTP2_END_HEADERS : 0;
        char *at = http2_outbox_room(session, HTTP2_FRAME_HEAD + length);
        at = http2_frame_write(at, length, type, flags | last, stream->id);
        slice_put(at, slice_make(block.base, length));
        http2_outbox_fill(session, HTTP2_FRAME_HEAD + length);
        block = slice_make(block.base + length, block.length - length);
        type = HTTP2_CONTINUATION;
        flags = 0;
    } while (block.length > 0);
    if (!session->working)
        http2_session_send_soon(session);
    note_end(stream, ended);
}

/* Where the next bytes of the data stand. */
struct data_cursor {
    const struct iovec *piece;
    size_t at;
};

/* Adds pieces of `bytes` bytes in all; returns the new count. */
static int cursor_take(struct data_cursor *cursor, struct iovec *pieces, int count, size_t bytes) {
    while (bytes > 0) {
        size_t part = cursor->piece->iov_len - cursor->at;
        if (part > bytes)
            part = bytes;
        if (part > 0)
            pieces[count++] = (struct iovec){(char *)cursor->piece->iov_base + cursor->at, part};
        cursor->at += part;
        bytes -= part;
        if (cursor->at == cursor->piece->iov_len) {
            cursor->piece++;
            cursor->at = 0;
        }
    }
    return count;
}

enum { DATA_FRAMES = STREAM_TURN / HTTP2_FRAME_SIZE_DEFAULT + 1 };

static void put_pieces(struct http2_stream *stream, const struct iovec *data, size_t bytes,
                       bool ended) {
    struct http2_session *session = stream->session;
    struct iovec pieces[1 + HTTP2_PIECES + 2 * DATA_FRAMES];
    char heads[DATA_FRAMES][HTTP2_FRAME_HEAD];
    struct data_cursor cursor = {data, 0};
    int count = 1;
    for (unsigned frame = 0; frame == 0 || bytes > 0; frame++) {
        size_t length = bytes < session->peer.frame ? bytes : session->peer.frame;
        bytes -= length;
        http2_frame_write(heads[frame], length, HTTP2_DATA,
                          ended && bytes == 0 ? HTTP2_END_STREAM : 0, stream->id);
        pieces[count++] = (struct iovec){heads[frame], HTTP2_FRAME_HEAD};
        count = cursor_take(&cursor, pieces, count, length);
    }
    http2_outbox_write(session, pieces, count - 1);
}

static void copy_pieces(struct http2_stream *stream, const struct iovec *data, size_t bytes,
                        bool ended) {
    struct http2_session *session = stream->session;
    struct iovec pieces[HTTP2_PIECES + 1];
    struct data_cursor cursor = {data, 0};
    do {
        size_t length = bytes < session->peer.frame ? bytes : session->peer.frame;
        bytes -= length;
        char *at = http2_outbox_room(session, HTTP2_FRAME_HEAD + length);
        at = http2_frame_write(at, length, HTTP2_DATA, ended && bytes == 0 ? HTTP2_END_STREAM : 0,
                               stream->id);
        int count = cursor_take(&cursor, pieces, 0, length);
        for (int i = 0; i < count; i++)
            at = slice_put(at, slice_make(pieces[i].iov_base, pieces[i].iov_len));
        http2_outbox_fill(session, HTTP2_FRAME_HEAD + length);
    } while (bytes > 0);
}

void http2_stream_put_data(struct http2_stream *stream, const struct iovec *pieces, int count,
                           size_t bytes, bool ended) {
    struct http2_session *session = stream->session;
    if (session == NULL || session->phase != HTTP2_OPEN)
        return;
    ASSERT(count <= HTTP2_PIECES && bytes <= STREAM_TURN);
    bool natural = ended || (int64_t)bytes < stream->send_window;
    stream->send_window -= (int64_t)bytes;
    session->send_window -= (int64_t)bytes;
    stream->sent += bytes;
    stream->stuck_since = 0;
    http2_session_allow_updates(session, bytes, natural);
    if (bytes <= HTTP2_SMALL || http2_session_is_stuck(session))
        copy_pieces(stream, pieces, bytes, ended);
    else
        put_pieces(stream, pieces, bytes, ended);
    if (!session->working)
        http2_session_send_soon(session);
    note_end(stream, ended);
}
