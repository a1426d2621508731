#include "net/duplex.h"

#include <poll.h>

struct connection_duplex {
    struct duplex base;
    struct net_context *net;
    struct connection *connection; /* NULL: aborted */
    struct net_buffer *ahead;      /* bytes read before the duplex began; NULL: none are left */
    bool finished;                 /* our direction has ended */
};

static struct connection_duplex *connection_duplex_of(struct duplex *duplex) {
    return CONTAINER_OF(duplex, struct connection_duplex, base);
}

static void connection_duplex_on_ready(struct connection *connection) {
    struct duplex *duplex;
    CAST_OBJ(duplex, connection->event.owner, DUPLEX_MAGIC);
    if (duplex->waker != NULL)
        loop_defer(connection->net->loop, duplex->waker);
}

static size_t read_ahead(struct connection_duplex *own, char *buffer, size_t capacity) {
    struct slice ahead = net_buffer_bytes(own->ahead);
    size_t length = ahead.length < capacity ? ahead.length : capacity;
    memcpy(buffer, ahead.base, length);
    own->ahead->begin += length;
    if (length == ahead.length)
        net_buffer_give(own->net, &own->ahead);
    return length;
}

static enum io_status connection_duplex_read(struct duplex *duplex, char *buffer, size_t capacity,
                                             size_t *got) {
    struct connection_duplex *own = connection_duplex_of(duplex);
    *got = 0;
    if (own->connection == NULL)
        return IO_FAILED;
    if (own->ahead != NULL)
        *got = read_ahead(own, buffer, capacity);
    if (*got > 0)
        return IO_DONE;
    if (!own->connection->readable)
        return IO_WAIT;
    return connection_read(own->connection, buffer, capacity, got);
}

static enum io_status connection_duplex_write(struct duplex *duplex, struct slice bytes,
                                              size_t *put) {
    struct connection_duplex *own = connection_duplex_of(duplex);
    struct iovec piece = {(void *)bytes.base, bytes.length};
    *put = 0;
    return own->connection == NULL ? IO_FAILED : connection_write(own->connection, &piece, 1, put);
}

static void connection_duplex_finish(struct duplex *duplex) {
    struct connection_duplex *own = connection_duplex_of(duplex);
    own->finished = true;
    if (own->connection != NULL)
        connection_shutdown(own->connection);
}

static void connection_duplex_abort(struct duplex *duplex) {
    connection_abort(&connection_duplex_of(duplex)->connection);
}

static void connection_duplex_close(struct duplex *duplex) {
    struct connection_duplex *own = connection_duplex_of(duplex);
    connection_close(&own->connection);
    net_buffer_give(own->net, &own->ahead);
    duplex->magic = 0;
    free(own);
}

static bool has_error(int fd) {
    struct pollfd errors_only = {.fd = fd};
    return poll(&errors_only, 1, 0) == 1 && (errors_only.revents & POLLERR);
}

/* When both directions have ended, the kernel reports that as it reports a reset, although bytes may
 * still wait to be read. Only a reset leaves an error then. */
static bool connection_duplex_is_lost(const struct duplex *duplex) {
    const struct connection_duplex *own =
        CONTAINER_OF(duplex, const struct connection_duplex, base);
    const struct connection *connection = own->connection;
    if (connection == NULL)
        return true;
    return connection->broken && (!own->finished || has_error(connection->event.fd));
}

static struct connection *connection_duplex_take(struct duplex *duplex,
                                                 struct net_buffer **aheadp) {
    struct connection_duplex *own = connection_duplex_of(duplex);
    struct connection *connection = own->connection;
    own->connection = NULL;
    if (connection != NULL) {
        *aheadp = own->ahead;
        own->ahead = NULL;
    }
    connection_duplex_close(duplex);
    return connection;
}

static const struct duplex_class connection_duplex_class = {
    .name = "connection",
    .read = connection_duplex_read,
    .write = connection_duplex_write,
    .finish = connection_duplex_finish,
    .abort = connection_duplex_abort,
    .close = connection_duplex_close,
    .is_lost = connection_duplex_is_lost,
    .take_connection = connection_duplex_take,
};

struct duplex *connection_duplex_new(struct connection **connectionp, struct net_buffer **aheadp) {
    struct connection_duplex *own = xcalloc(1, sizeof *own);
    own->base.magic = DUPLEX_MAGIC;
    own->base.class = &connection_duplex_class;
    own->connection = *connectionp;
    own->net = own->connection->net;
    own->ahead = *aheadp;
    *connectionp = NULL;
    *aheadp = NULL;
    connection_set_owner(own->connection, connection_duplex_on_ready, &own->base);
    if (!connection_watch(own->connection))
        connection_abort(&own->connection);
    return &own->base;
}
