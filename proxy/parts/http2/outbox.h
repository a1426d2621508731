/*
 * The outbox: bytes of a session on their way to the socket.
 *
 *     char *at = http2_outbox_room(session, 13);        always there: it grows
 *     http2_outbox_put(session, slice);
 *     http2_outbox_write(session, pieces, count);       with what was put before, and not copied
 *     enum io_status status = http2_outbox_flush(session);
 *
 * While a session works, its bytes stand in the outbox of its workspace, which all sessions
 * use one after the other. What the socket does not take moves to memory of the session's own.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_OUTBOX_H
#define RETORT_HTTP2_OUTBOX_H

#include "base/slice.h"
#include "event/loop.h"
#include "http2/hpack.h"

#include <sys/uio.h>

struct http2_session;
struct net_context;

/* HTTP2_SMALL: data up to this length is copied, because few pieces are sent faster than many. */
enum { HTTP2_OUTBOX = 64 * 1024, HTTP2_SMALL = 4096, HTTP2_PIECES = 24 };

/* What the sessions of a worker share, those to clients and those to origins apart. */
struct http2_workspace {
    struct net_context *net;
    struct http2_session *user; /* whose outbox it is; NULL: nobody's */
    struct hpack_list *list;    /* of the head that is being read; see http2_workspace_list */
    size_t list_most;           /* bytes of the largest head that it is for */
    char outbox[HTTP2_OUTBOX];
};

struct http2_outbox {
    char *base; /* the workspace's, or the session's own; NULL: empty */
    size_t begin, end, capacity;
    bool own;
    bool stuck; /* the socket has not taken all of it */
};

void http2_workspace_init(struct http2_workspace *workspace, struct net_context *net);
void http2_workspace_release(struct http2_workspace *workspace);
/* An empty list for one head of at most `size_most` bytes. It is good until the next call. */
struct hpack_list *http2_workspace_list(struct http2_workspace *workspace, size_t size_most);

static inline size_t http2_outbox_length(const struct http2_outbox *outbox) {
    return outbox->end - outbox->begin;
}

/* Room for so many bytes behind the others, which http2_outbox_fill then says are there. */
char *http2_outbox_room(struct http2_session *session, size_t bytes);
void http2_outbox_fill(struct http2_session *session, size_t bytes);
void http2_outbox_put(struct http2_session *session, struct slice bytes);
/* Writes what was put before, and the pieces. What is not taken is copied. `pieces[0]` is free for
 * the former. */
void http2_outbox_write(struct http2_session *session, struct iovec *pieces, int count);
/* Room that is left before the outbox should be flushed. */
size_t http2_outbox_left(const struct http2_session *session);
/* IO_DONE: empty. IO_WAIT: the rest has moved to memory of the session's own. */
enum io_status http2_outbox_flush(struct http2_session *session);
void http2_outbox_release(struct http2_session *session);

#endif
