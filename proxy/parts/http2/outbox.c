#include "http2/outbox.h"

#include "base/assert.h"
#include "http/head.h"
#include "http2/session.h"

void http2_workspace_init(struct http2_workspace *workspace, struct net_context *net) {
    workspace->net = net;
    workspace->user = NULL;
    workspace->list = NULL;
}

void http2_workspace_release(struct http2_workspace *workspace) {
    ASSERT(workspace->user == NULL);
    free(workspace->list);
    workspace->list = NULL;
}

/* A list, its fields and, behind them, its text in one piece of memory. */
struct list_memory {
    struct hpack_list list;
    struct hpack_field fields[];
};

struct hpack_list *http2_workspace_list(struct http2_workspace *workspace, size_t size_most) {
    struct list_memory *memory = (struct list_memory *)workspace->list;
    unsigned fields = HPACK_LIST_FIELDS(size_most);
    size_t text = HPACK_LIST_TEXT(size_most);
    if (memory == NULL || workspace->list_most < size_most) {
        free(memory);
        memory = xmalloc(sizeof *memory + fields * sizeof *memory->fields + text);
        workspace->list = &memory->list;
        workspace->list_most = size_most;
    }
    hpack_list_init(&memory->list, (char *)&memory->fields[fields], text, memory->fields, fields,
                    size_most);
    return &memory->list;
}

/* Memory of the session's own counts for client.memory. */
static char *outbox_hold(struct http2_session *session, size_t capacity) {
    net_context_hold(session->net, capacity);
    return xmalloc(capacity);
}

/* Gives the outbox back, if it is the one that sessions share, or frees it. */
static void outbox_leave(struct http2_session *session) {
    struct http2_outbox *outbox = &session->outbox;
    if (session->workspace->user == session)
        session->workspace->user = NULL;
    if (!outbox->own)
        return;
    free(outbox->base);
    net_context_drop(session->net, outbox->capacity);
}

static void outbox_begin(struct http2_session *session, size_t bytes) {
    struct http2_outbox *outbox = &session->outbox;
    struct http2_workspace *workspace = session->workspace;
    bool shared = workspace->user == NULL && bytes <= HTTP2_OUTBOX;
    if (shared)
        workspace->user = session;
    outbox->capacity = shared ? HTTP2_OUTBOX : bytes < HTTP2_SMALL ? HTTP2_SMALL : bytes;
    outbox->base = shared ? workspace->outbox : outbox_hold(session, outbox->capacity);
    outbox->own = !shared;
    outbox->begin = outbox->end = 0;
}

/* Moves what waits to memory of the session's own that has room for `bytes` more. */
static void outbox_move(struct http2_session *session, size_t bytes) {
    struct http2_outbox *outbox = &session->outbox;
    size_t length = http2_outbox_length(outbox);
    size_t capacity = length + bytes;
    if (bytes > 0)
        capacity += length > HTTP2_SMALL ? length : HTTP2_SMALL;
    char *base = outbox_hold(session, capacity);
    memcpy(base, outbox->base + outbox->begin, length);
    outbox_leave(session);
    outbox->base = base;
    outbox->begin = 0;
    outbox->end = length;
    outbox->capacity = capacity;
    outbox->own = true;
}

char *http2_outbox_room(struct http2_session *session, size_t bytes) {
    struct http2_outbox *outbox = &session->outbox;
    if (outbox->base == NULL)
        outbox_begin(session, bytes);
    else if (outbox->capacity - outbox->end < bytes)
        outbox_move(session, bytes);
    return outbox->base + outbox->end;
}

void http2_outbox_fill(struct http2_session *session, size_t bytes) {
    session->outbox.end += bytes;
    ASSERT(session->outbox.end <= session->outbox.capacity);
}

void http2_outbox_put(struct http2_session *session, struct slice bytes) {
    if (bytes.length == 0)
        return;
    memcpy(http2_outbox_room(session, bytes.length), bytes.base, bytes.length);
    http2_outbox_fill(session, bytes.length);
}

size_t http2_outbox_left(const struct http2_session *session) {
    const struct http2_outbox *outbox = &session->outbox;
    size_t length = http2_outbox_length(outbox);
    return outbox->stuck || length > HTTP2_OUTBOX ? 0 : HTTP2_OUTBOX - length;
}

void http2_outbox_release(struct http2_session *session) {
    struct http2_outbox *outbox = &session->outbox;
    outbox_leave(session);
    *outbox = (struct http2_outbox){NULL, 0, 0, 0, false, false};
}

static void outbox_took(struct http2_session *session, size_t bytes) {
    struct http2_outbox *outbox = &session->outbox;
    if (bytes > 0)
        session->stuck_since = 0;
    outbox->begin += bytes;
    if (outbox->begin == outbox->end)
        http2_outbox_release(session);
}

/* Copies what is left of the pieces behind the first `taken` bytes. */
static void keep_rest(struct http2_session *session, const struct iovec *pieces, int count,
                      size_t taken) {
    for (int i = 0; i < count; i++) {
        size_t skip = taken < pieces[i].iov_len ? taken : pieces[i].iov_len;
        http2_outbox_put(session,
                         slice_make((char *)pieces[i].iov_base + skip, pieces[i].iov_len - skip));
        taken -= skip;
    }
}

void http2_outbox_write(struct http2_session *session, struct iovec *pieces, int count) {
    struct http2_outbox *outbox = &session->outbox;
    size_t held = http2_outbox_length(outbox), sent = 0;
    bool first = held == 0;
    pieces[0] = (struct iovec){first ? NULL : outbox->base + outbox->begin, held};
    enum io_status status =
        connection_write(session->socket, pieces + first, count + 1 - first, &sent);
    if (status == IO_FAILED || status == IO_END) {
        http2_session_broke(session);
        return;
    }
    *session->counts.bytes_out += sent;
    size_t of_held = sent < held ? sent : held;
    outbox_took(session, of_held);
    keep_rest(session, pieces + 1, count, sent - of_held);
}

static void note_stuck(struct http2_session *session) {
    session->outbox.stuck = true;
    if (session->stuck_since == 0)
        session->stuck_since = session->net->loop->now;
    http2_session_wake_at(session, session->stuck_since + session->limits.send_timeout);
}

enum io_status http2_outbox_flush(struct http2_session *session) {
    struct http2_outbox *outbox = &session->outbox;
    while (http2_outbox_length(outbox) > 0 && session->socket != NULL) {
        size_t sent = 0;
        struct iovec piece = {outbox->base + outbox->begin, http2_outbox_length(outbox)};
        enum io_status status = connection_write(session->socket, &piece, 1, &sent);
        if (status == IO_FAILED || status == IO_END) {
            http2_session_broke(session);
            return IO_FAILED;
        }
        *session->counts.bytes_out += sent;
        outbox_took(session, sent);
        if (status == IO_WAIT) {
            if (!outbox->own)
                outbox_move(session, 0);
            note_stuck(session);
            return IO_WAIT;
        }
    }
    http2_outbox_release(session);
    return IO_DONE;
}
