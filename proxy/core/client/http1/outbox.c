#include "client/http1/outbox.h"

#include "base/assert.h"

bool http1_outbox_hold(struct http1_connection *connection, const struct iovec *pieces, int count,
                       size_t *held) {
    struct http1_host *host = connection->host;
    char *end = host->outbox + sizeof host->outbox, *at = host->outbox;
    if (connection->held.length > 0)
        at = (char *)connection->held.base + connection->held.length;
    char *begin = at;
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len > (size_t)(end - at))
            return false;
        at = slice_put(at, slice_make(pieces[i].iov_base, pieces[i].iov_len));
    }
    *held = (size_t)(at - begin);
    connection->held.base = begin - connection->held.length;
    connection->held.length += *held;
    return true;
}

static void outbox_take_off(struct http1_connection *connection, size_t sent) {
    connection->held.base += sent;
    connection->held.length -= sent;
    if (connection->held.length > 0)
        return;
    free(connection->held_memory);
    connection->held_memory = NULL;
}

static enum io_status outbox_write_pieces(const struct http1_connection *connection,
                                          const struct iovec *pieces, int count, bool more,
                                          size_t *put) {
    return more ? connection_write_more(connection->socket, pieces, count, put)
                : connection_write(connection->socket, pieces, count, put);
}

enum io_status http1_outbox_write(struct http1_connection *connection, struct iovec *pieces,
                                  int count, bool more, size_t *put) {
    size_t sent, held = connection->held.length;
    if (held == 0)
        return outbox_write_pieces(connection, pieces + 1, count, more, put);
    pieces[0] = (struct iovec){(void *)connection->held.base, held};
    enum io_status status = outbox_write_pieces(connection, pieces, count + 1, more, &sent);
    size_t taken = sent < held ? sent : held;
    outbox_take_off(connection, taken);
    *put = sent - taken;
    return status;
}

/* The next client uses the same outbox: moves what this connection still holds in it to memory of
 * its own. */
static void move_out(struct http1_connection *connection) {
    if (connection->held.length == 0 || connection->held_memory != NULL)
        return;
    connection->held_memory = xmalloc(connection->held.length);
    memcpy(connection->held_memory, connection->held.base, connection->held.length);
    connection->held.base = connection->held_memory;
}

enum io_status http1_outbox_flush_held(struct http1_connection *connection) {
    enum io_status status = IO_DONE;
    struct iovec piece;
    size_t put;
    if (connection->socket == NULL)
        outbox_take_off(connection, connection->held.length);
    while (connection->held.length > 0 && status == IO_DONE)
        status = http1_outbox_write(connection, &piece, 0, false, &put);
    move_out(connection);
    return status;
}
