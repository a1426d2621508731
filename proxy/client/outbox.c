#include "client/client.h"

#include "base/assert.h"

/* The outbox: where answers wait while further requests of the same client stand in its buffer, so
 * that all of them leave with one write. A worker has one, which belongs to the client whose
 * requests are just being read; what the socket does not take then moves to memory of the client's
 * own, and no further request is read before it is gone. */

static bool more_requests_wait(const struct client *client) {
    return client->reading && client->buffer != NULL && client->buffer->begin < client->buffer->end;
}

bool client_hold(struct client *client, const struct iovec *pieces, int count, size_t *held) {
    struct client_hooks *hooks = client->hooks;
    char *end = hooks->outbox + sizeof hooks->outbox, *at = hooks->outbox;
    if (!more_requests_wait(client) || client->held_memory != NULL)
        return false;
    if (client->held.length > 0)
        at = (char *)client->held.base + client->held.length;
    char *begin = at;
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len > (size_t)(end - at))
            return false;
        at = slice_put(at, slice_make(pieces[i].iov_base, pieces[i].iov_len));
    }
    *held = (size_t)(at - begin);
    client->held.base = begin - client->held.length;
    client->held.length += *held;
    return true;
}

static void outbox_take_off(struct client *client, size_t sent) {
    client->held.base += sent;
    client->held.length -= sent;
    if (client->held.length > 0)
        return;
    free(client->held_memory);
    client->held_memory = NULL;
}

static enum io_status outbox_write_pieces(const struct client *client, const struct iovec *pieces,
                                          int count, bool more, size_t *put) {
    return more ? connection_write_more(client->connection, pieces, count, put)
                : connection_write(client->connection, pieces, count, put);
}

enum io_status client_write(struct client *client, struct iovec *pieces, int count, bool more,
                            size_t *put) {
    size_t sent, held = client->held.length;
    if (held == 0)
        return outbox_write_pieces(client, pieces + 1, count, more, put);
    pieces[0] = (struct iovec){(void *)client->held.base, held};
    enum io_status status = outbox_write_pieces(client, pieces, count + 1, more, &sent);
    size_t taken = sent < held ? sent : held;
    outbox_take_off(client, taken);
    *put = sent - taken;
    return status;
}

/* The outbox is another client's next. */
static void move_out(struct client *client) {
    if (client->held.length == 0 || client->held_memory != NULL)
        return;
    client->held_memory = xmalloc(client->held.length);
    memcpy(client->held_memory, client->held.base, client->held.length);
    client->held.base = client->held_memory;
}

enum io_status client_flush(struct client *client) {
    enum io_status status = IO_DONE;
    struct iovec piece;
    size_t put;
    if (client->connection == NULL)
        outbox_take_off(client, client->held.length);
    while (client->held.length > 0 && status == IO_DONE)
        status = client_write(client, &piece, 0, false, &put);
    move_out(client);
    return status;
}
