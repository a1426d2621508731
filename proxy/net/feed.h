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
#ifndef RETORT_NET_FEED_H
#define RETORT_NET_FEED_H

#include "event/source.h"
#include "net/context.h"

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

void feed_init(struct feed *feed, struct net_context *net, struct source *source, bool chunked);
/* Pauses after `limit` bytes and appends `limit_mark`. If the body ends within the limit,
 * `end_mark` is appended instead. */
void feed_set_limit(struct feed *feed, uint64_t limit, struct slice limit_mark,
                    struct slice end_mark);
void feed_lift_limit(struct feed *feed);
enum feed_status feed_fill(struct feed *feed);
struct slice feed_bytes(const struct feed *feed);
void feed_consume(struct feed *feed, size_t count);
void feed_release(struct feed *feed);

/* The feed has no source, or all bytes up to the end of the body or up to the limit are written. */
static inline bool feed_is_done(const struct feed *feed) {
    return feed->source == NULL ||
           ((feed->ended || feed->at_limit) && feed_bytes(feed).length == 0);
}

#endif
