#include "net/sender.h"

#include "base/assert.h"
#include "http/chunked.h"

enum { OVERHEAD = CHUNKED_HEAD_MAX + 2 };

static void feed_init(struct feed *feed, struct net_context *net, struct source *source,
                      bool chunked) {
    memset(feed, 0, sizeof *feed);
    feed->net = net;
    feed->source = source;
    feed->chunked = chunked;
    feed->limit = UINT64_MAX;
    feed->end_mark = chunked ? SLICE("0\r\n\r\n") : slice_make("", 0);
}

void feed_set_limit(struct feed *feed, uint64_t limit, struct slice limit_mark,
                    struct slice end_mark) {
    feed->limit = limit;
    feed->limit_mark = limit_mark;
    feed->end_mark = end_mark;
}

void feed_lift_limit(struct feed *feed) {
    feed->limit = UINT64_MAX;
    feed->at_limit = false;
    feed->end_mark = SLICE("0\r\n\r\n");
}

struct slice feed_bytes(const struct feed *feed) {
    return feed->out == NULL ? slice_make("", 0) : net_buffer_bytes(feed->out);
}

static void feed_consume(struct feed *feed, size_t count) {
    if (count == 0)
        return;
    ASSERT(count <= feed_bytes(feed).length);
    feed->out->begin += count;
    if (feed->out->begin == feed->out->end)
        net_buffer_give(feed->net, &feed->out);
}

void feed_release(struct feed *feed) {
    net_buffer_give(feed->net, &feed->out);
    feed->source = NULL;
}

static void feed_append(struct feed *feed, struct slice mark) {
    memcpy(feed->out->data + feed->out->end, mark.base, mark.length);
    feed->out->end += mark.length;
}

/* Puts the size line before the bytes and the line end behind them. */
static void frame(struct feed *feed, size_t size) {
    char head[CHUNKED_HEAD_MAX];
    size_t length = chunked_write_head(head, size);
    feed->out->begin -= length;
    memcpy(feed->out->data + feed->out->begin, head, length);
    feed_append(feed, SLICE("\r\n"));
}

static enum feed_status feed_finish(struct feed *feed, bool *flag, struct slice mark) {
    *flag = true;
    feed_append(feed, mark);
    if (feed->out->begin < feed->out->end)
        return FEED_READY;
    net_buffer_give(feed->net, &feed->out);
    return FEED_DONE;
}

static enum feed_status at_limit(struct feed *feed) {
    if (feed->source->length >= 0 && (uint64_t)feed->source->length == feed->taken)
        return feed_finish(feed, &feed->ended, feed->end_mark);
    return feed_finish(feed, &feed->at_limit, feed->limit_mark);
}

static enum feed_status feed_failed(struct feed *feed) {
    net_buffer_give(feed->net, &feed->out);
    return FEED_FAILED;
}

/* Frames a piece. If this piece is known to be the last one, the mark is appended to it. */
static void frame_with_end(struct feed *feed, size_t size, uint64_t announced) {
    _Static_assert(CHUNKED_HEAD_MAX >= sizeof "0; ieof\r\n\r\n", "there is room for a mark");
    frame(feed, size);
    if (feed->limit == 0)
        at_limit(feed);
    else if (feed->taken == announced)
        feed_finish(feed, &feed->ended, feed->end_mark);
}

/* Takes a large buffer when so many bytes are expected, otherwise a small one. */
static struct net_buffer *feed_take_buffer(struct feed *feed) {
    const struct source *source = feed->source;
    bool large = feed->limit > NET_BUFFER_SIZE &&
                 (source->length < 0 ? feed->taken >= NET_BUFFER_SIZE
                                     : (uint64_t)source->length > feed->taken + NET_BUFFER_SIZE);
    if (feed->out == NULL && large)
        feed->out = net_buffer_take_large(feed->net);
    if (feed->out == NULL)
        feed->out = net_buffer_take(feed->net);
    return feed->out;
}

/* For a large buffer, reads on after the first bytes until the buffer is full or the source has no
 * more. */
static size_t read_more(struct feed *feed, size_t got, size_t capacity) {
    size_t more;
    while (feed->out->capacity > NET_BUFFER_SIZE && got < capacity &&
           source_read(feed->source, feed->out->data + feed->out->begin + got, capacity - got,
                       &more) == SOURCE_DATA)
        got += more;
    return got;
}

enum feed_status feed_fill(struct feed *feed) {
    if (feed_bytes(feed).length > 0)
        return FEED_READY;
    if (feed_is_done(feed))
        return FEED_DONE;
    struct net_buffer *out = feed_take_buffer(feed);
    out->begin = out->end = feed->chunked ? CHUNKED_HEAD_MAX : 0;
    if (feed->limit == 0)
        return at_limit(feed);
    size_t capacity = out->capacity - OVERHEAD - CHUNKED_HEAD_MAX, got;
    if (capacity > feed->limit)
        capacity = (size_t)feed->limit;
    /* The head announced this length. With another length, the receiver would misread where the
     * next message begins. */
    uint64_t announced = feed->source->length < 0 ? UINT64_MAX : (uint64_t)feed->source->length;
    switch (source_read(feed->source, out->data + out->begin, capacity, &got)) {
    case SOURCE_DATA: got = read_more(feed, got, capacity); break;
    case SOURCE_END:
        if (announced != UINT64_MAX && feed->taken != announced)
            return feed_failed(feed);
        return feed_finish(feed, &feed->ended, feed->end_mark);
    case SOURCE_WAIT: net_buffer_give(feed->net, &feed->out); return FEED_WAIT;
    default: return feed_failed(feed);
    }
    feed->started = true;
    feed->taken += got;
    if (feed->taken > announced)
        return feed_failed(feed);
    out->end += got;
    if (feed->limit != UINT64_MAX)
        feed->limit -= got;
    if (feed->chunked)
        frame_with_end(feed, got, announced);
    return FEED_READY;
}

void sender_init(struct sender *sender, struct net_context *net, struct source *source,
                 bool chunked) {
    sender->head = slice_make("", 0);
    feed_init(&sender->feed, net, source, chunked);
}

void sender_stop(struct sender *sender) {
    sender->head.length = 0;
    feed_release(&sender->feed);
}

static int sender_gather(const struct sender *sender, struct iovec *pieces) {
    struct slice body = feed_bytes(&sender->feed);
    int count = gather_pieces(pieces, &sender->head, 1);
    return count + gather_pieces(pieces + count, &body, 1);
}

enum sender_status sender_write(struct sender *sender, struct connection *connection,
                                unsigned turns, uint64_t *sent) {
    struct iovec pieces[2];
    size_t written;
    *sent = 0;
    for (; turns > 0; turns--) {
        enum feed_status status = feed_fill(&sender->feed);
        if (status == FEED_FAILED)
            return SENDER_BROKEN;
        int count = sender_gather(sender, pieces);
        if (count == 0)
            return status == FEED_WAIT ? SENDER_STARVED : SENDER_DONE;
        switch (connection_write(connection, pieces, count, &written)) {
        case IO_DONE:
            *sent += written;
            feed_consume(&sender->feed, gather_consume(&sender->head, 1, written));
            break;
        case IO_WAIT: return SENDER_BLOCKED;
        default: return SENDER_LOST;
        }
    }
    return SENDER_MORE;
}
