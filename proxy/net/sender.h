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

#include "net/connection.h"
#include "net/feed.h"

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
