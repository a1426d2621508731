#include "net/sender.h"

#include "base/assert.h"
#include "net/gather.h"

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
