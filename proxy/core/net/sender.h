/*
 * A sender: it writes a message into a connection. A message is a head, and a body that a source
 * gives. The calls to origins and to ICAP services send their requests with it.
 *
 *     sender_init(&call->sender, net, source, chunked);      source NULL: there is no body
 *     call->sender.head = head;                              the bytes belong to the caller
 *     switch (sender_write(&call->sender, call->connection, TURNS, &sent)) {
 *     case SENDER_DONE:    head and body are out
 *     case SENDER_STARVED: the source has no bytes now; its waker will run
 *     case SENDER_BLOCKED: the connection takes no more now; on_ready is called when it does
 *     case SENDER_MORE:    TURNS writes have been made; call again from a task
 *     case SENDER_BROKEN:  the body broke off: abort the connection, never complete the message
 *     case SENDER_LOST:    the other side reads no more; it may have answered
 *     }
 *     sender_stop(&call->sender);
 *
 * feed_set_limit on `sender.feed` makes the body pause at a limit (an ICAP preview). SENDER_DONE
 * then also says that the limit was reached.
 *
 * When head and body both wait, one write sends them. At most one piece of the body waits to be
 * written.
 * Threads: the worker's thread only.
 */
#ifndef RETORT_NET_SENDER_H
#define RETORT_NET_SENDER_H

#include "base/slice.h"
#include "event/source.h"
#include "net/connection.h"
#include "net/context.h"

#include <sys/uio.h>

/*
 * A feed: takes a body from a source and prepares it for a socket, one piece at a time, chunked or
 * as it is. The senders of requests and responses use it.
 *
 *     feed_init(&feed, net, source, true);
 *     switch (feed_fill(&feed)) {              FEED_READY: feed_bytes() wait to be written
 *     ...                                      FEED_WAIT: the source's waker will run
 *     feed_consume(&feed, written);            FEED_DONE: all of it is out
 *     feed_release(&feed);                     FEED_FAILED: abort the socket, never complete it
 *
 * A limit makes the feed pause after so many bytes, and write a mark (an ICAP preview);
 * feed_lift_limit lets it go on. At most one piece waits to be written: this makes the source wait
 * for a slow socket.
 */

enum feed_status { FEED_READY, FEED_WAIT, FEED_DONE, FEED_FAILED };

struct feed {
    struct net_context *net;
    struct source *source; /* not owned; NULL: nothing to send */
    bool chunked;
    bool started;  /* bytes of the source have been read */
    bool ended;    /* the source's end has been framed */
    bool at_limit; /* the limit's mark has been framed */
    uint64_t limit;
    uint64_t taken;
    struct slice end_mark, limit_mark;
    struct net_buffer *out;
};

/* Pauses after `limit` bytes and appends `limit_mark`. If the body ends within the limit,
 * `end_mark` is appended instead. */
void feed_set_limit(struct feed *feed, uint64_t limit, struct slice limit_mark,
                    struct slice end_mark);
void feed_lift_limit(struct feed *feed);
enum feed_status feed_fill(struct feed *feed);
struct slice feed_bytes(const struct feed *feed);
void feed_release(struct feed *feed);

/* The feed has no source, or all bytes up to the end of the body or up to the limit are written. */
static inline bool feed_is_done(const struct feed *feed) {
    return feed->source == NULL ||
           ((feed->ended || feed->at_limit) && feed_bytes(feed).length == 0);
}

/*
 * Gathering: sends several slices with one write, and finds out what is left of them afterwards.
 *
 *     struct slice head[2] = {stored_head, extra_fields};
 *     struct iovec pieces[2 + MORE];
 *     int count = gather_pieces(pieces, head, 2);            empty slices take no piece
 *     ... append pieces of the body; write all; `sent` bytes were written ...
 *     size_t of_body = gather_consume(head, 2, sent);        bytes sent beyond the slices
 */

/* Returns how many of `pieces` were filled: one for each slice that is not empty. */
static inline int gather_pieces(struct iovec *pieces, const struct slice *slices, int count) {
    int filled = 0;
    for (int i = 0; i < count; i++)
        if (slices[i].length > 0)
            pieces[filled++] = (struct iovec){(void *)slices[i].base, slices[i].length};
    return filled;
}

/* Removes the first `sent` bytes from the slices, in their order. Returns how many bytes were sent
 * beyond the slices. */
static inline size_t gather_consume(struct slice *slices, int count, size_t sent) {
    for (int i = 0; i < count && sent > 0; i++) {
        size_t taken = sent < slices[i].length ? sent : slices[i].length;
        slices[i].base += taken;
        slices[i].length -= taken;
        sent -= taken;
    }
    return sent;
}

enum sender_status {
    SENDER_DONE,
    SENDER_STARVED,
    SENDER_BLOCKED,
    SENDER_MORE,
    SENDER_BROKEN,
    SENDER_LOST,
};

struct sender {
    struct slice head; /* the part that is not sent yet */
    struct feed feed;
};

void sender_init(struct sender *sender, struct net_context *net, struct source *source,
                 bool chunked);
/* Writes until the message is out, something has to be awaited, or `turns` writes have been made.
 * *sent: the bytes that went out, whatever the status is. */
enum sender_status sender_write(struct sender *sender, struct connection *connection,
                                unsigned turns, uint64_t *sent);
/* Drops the rest of the message. */
void sender_stop(struct sender *sender);

/* No bytes wait to be written, and the source gives no more. */
static inline bool sender_is_done(const struct sender *sender) {
    return sender->head.length == 0 && feed_is_done(&sender->feed);
}

/* All bytes that the source has given are written, and the source will give more. */
static inline bool sender_is_starved(const struct sender *sender) {
    return sender->head.length == 0 && !feed_is_done(&sender->feed) &&
           feed_bytes(&sender->feed).length == 0;
}

#endif
