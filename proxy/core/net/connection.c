#include "net/connection.h"

#include "base/assert.h"
#include "net/own_connections.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { INTEREST = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, JOIN_MOST = 12 * 1024 };
/* AWAIT_MOST is smaller than a receive window, so the other side goes on sending while these bytes
 * are read and passed on. */
enum { AWAIT_MOST = 48 * 1024, AWAIT_MILLISECONDS = 1 };

/* The end of our direction follows the close_notify. */
static void end_when_sent(struct connection *connection) {
    if (tls_stream_finish(connection->tls) == IO_WAIT)
        return;
    connection->ending = false;
    shutdown(connection->event.fd, SHUT_WR);
}

static void tls_on_event(struct connection *connection) {
    if (connection->readable)
        tls_stream_note_event(connection->tls, connection->hangup);
    if (tls_stream_is_crossed(connection->tls))
        connection->readable = connection->writable = true;
    if (connection->writable && connection->ending)
        end_when_sent(connection);
    else if (connection->writable)
        tls_stream_flush(connection->tls);
}

static void connection_on_event(struct event *event, uint32_t events) {
    struct connection *connection = CONTAINER_OF(event, struct connection, event);
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        connection->hangup = true;
    if (events & (EPOLLHUP | EPOLLERR))
        connection->broken = true;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        connection->readable = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        connection->writable = true;
    if (connection->tls != NULL)
        tls_on_event(connection);
    connection->on_ready(connection);
}

struct connection *connection_adopt(struct net_context *net, int *fdp,
                                    connection_ready_fn *on_ready, void *owner) {
    struct connection *connection;
    ALLOC_OBJ(connection, CONNECTION_MAGIC);
    connection->readable = connection->writable = true;
    connection->net = net;
    event_init(&connection->event);
    connection->event.fd = *fdp;
    connection->on_ready = on_ready;
    connection->event.owner = owner;
    list_init(&connection->pool_link);
    timer_init(&connection->timer, NULL);
    connection->low_water = 1;
    *fdp = -1;
    return connection;
}

bool connection_watch(struct connection *connection) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    int fd = connection->event.fd;
    if (!connection->watched)
        connection->watched =
            loop_add(connection->net->loop, &connection->event, fd, INTEREST, connection_on_event);
    connection->event.fd = fd;
    return connection->watched;
}

struct connection *connection_new(struct net_context *net, int *fdp, connection_ready_fn *on_ready,
                                  void *owner) {
    struct connection *connection = connection_adopt(net, fdp, on_ready, owner);
    connection->readable = connection->writable = false;
    if (!connection_watch(connection))
        connection_close(&connection);
    return connection;
}

void connection_set_owner(struct connection *connection, connection_ready_fn *on_ready,
                          void *owner) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    connection->on_ready = on_ready;
    connection->event.owner = owner;
}

void connection_note_remote(struct connection *connection, const struct address *remote) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    if (connection->remote == NULL)
        connection->remote = xmalloc(sizeof *connection->remote);
    *connection->remote = *remote;
}

void connection_close(struct connection **connectionp) {
    struct connection *connection = *connectionp;
    *connectionp = NULL;
    if (connection == NULL)
        return;
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    int fd = connection->event.fd;
    timer_cancel(&connection->net->loop->timers, &connection->timer);
    list_remove(&connection->pool_link);
    tls_stream_free(&connection->tls);
    tls_stream_free(&connection->below);
    if (connection->watched)
        loop_remove(connection->net->loop, &connection->event);
    if (connection->own != NULL)
        connection->net->own_connections->remove(connection->net->own_connections,
                                                 &connection->own);
    free(connection->remote);
    close(fd);
    FREE_OBJ(connection);
}

void connection_cut(struct connection **connectionp) {
    if (*connectionp != NULL && (*connectionp)->tls != NULL)
        tls_stream_abandon((*connectionp)->tls);
    connection_close(connectionp);
}

void connection_abort(struct connection **connectionp) {
    if (*connectionp == NULL)
        return;
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt((*connectionp)->event.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    connection_cut(connectionp);
}

static enum io_status after_read(struct connection *connection, ssize_t count, size_t capacity,
                                 size_t *got) {
    *got = 0;
    if (count > 0) {
        *got = (size_t)count;
        /* The kernel gave less than was asked for, so the socket is empty. The next byte causes an
         * event. */
        connection->readable = *got == capacity || connection->hangup;
        return IO_DONE;
    }
    if (count == 0)
        return IO_END;
    if (errno != EAGAIN)
        return IO_FAILED;
    connection->readable = false;
    return IO_WAIT;
}

static enum io_status handshake(struct connection *connection) {
    if (connection->tls == NULL)
        return IO_FAILED;
    if (connection->hangup) /* it may have come before there was a stream */
        tls_stream_note_event(connection->tls, true);
    /* Bytes that came right after the handshake may have been read together with it. */
    connection->readable = connection->writable = true;
    return tls_stream_handshake(connection->tls);
}

enum io_status connection_secure(struct connection *connection, struct tls_client *client) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    if (connection->tls == NULL)
        connection->tls = tls_stream_connect(client, connection->event.fd, &connection->below);
    return handshake(connection);
}

void connection_nest(struct connection *connection) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    ASSERT(connection->below == NULL);
    connection->below = connection->tls;
    connection->tls = NULL;
}

bool connection_prepare_secure(struct connection *connection, struct tls_server *server,
                               struct slice replay) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    ASSERT(connection->tls == NULL);
    connection->tls = tls_stream_accept(server, connection->event.fd, replay);
    return connection->tls != NULL;
}

enum io_status connection_accept_secure(struct connection *connection, struct tls_server *server,
                                        struct slice replay) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    if (connection->tls == NULL)
        connection_prepare_secure(connection, server, replay);
    return handshake(connection);
}

const struct tls_facts *connection_tls_facts(const struct connection *connection) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    return connection->tls != NULL ? tls_stream_facts(connection->tls) : NULL;
}

const char *connection_error(const struct connection *connection) {
    return connection->tls != NULL ? tls_stream_error(connection->tls) : strerrordesc_np(errno);
}

/* The kernel does not report bytes that the stream has taken already. `readable` stays set while
 * there may be some. */
static enum io_status read_secured(struct connection *connection, char *buffer, size_t capacity,
                                   size_t *got) {
    enum io_status status = tls_stream_read(connection->tls, buffer, capacity, got);
    if (status == IO_WAIT)
        connection->readable = false;
    else if (status == IO_DONE)
        connection->readable = connection->hangup || tls_stream_has_more(connection->tls);
    return status;
}

enum io_status connection_read(struct connection *connection, char *buffer, size_t capacity,
                               size_t *got) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    ssize_t count;
    if (connection->tls != NULL)
        return read_secured(connection, buffer, capacity, got);
    do
        count = recv(connection->event.fd, buffer, capacity, 0);
    while (count < 0 && errno == EINTR);
    return after_read(connection, count, capacity, got);
}

enum io_status connection_peek(struct connection *connection, char *first) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    ssize_t count;
    size_t got;
    ASSERT(connection->tls == NULL);
    do
        count = recv(connection->event.fd, first, 1, MSG_PEEK);
    while (count < 0 && errno == EINTR);
    return after_read(connection, count, 1, &got);
}

enum io_status connection_read_pieces(struct connection *connection, const struct iovec *pieces,
                                      int count, size_t *got) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    ssize_t read;
    size_t capacity = 0;
    if (connection->tls != NULL)
        return read_secured(connection, pieces->iov_base, pieces->iov_len, got);
    for (int i = 0; i < count; i++)
        capacity += pieces[i].iov_len;
    do
        read = readv(connection->event.fd, pieces, count);
    while (read < 0 && errno == EINTR);
    return after_read(connection, read, capacity, got);
}

static void set_low_water(struct connection *connection, unsigned bytes) {
    if (connection->low_water == bytes)
        return;
    connection->low_water = bytes;
    setsockopt(connection->event.fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

static void on_await_over(struct timer *timer) {
    struct connection *connection = CONTAINER_OF(timer, struct connection, timer);
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    set_low_water(connection, 1);
    connection->readable = true;
    connection->on_ready(connection);
}

void connection_await(struct connection *connection, size_t bytes) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    struct loop *loop = connection->net->loop;
    if (bytes <= 1) {
        timer_set(&loop->timers, &connection->timer, TIMER_NEVER);
        set_low_water(connection, 1);
        return;
    }
    connection->timer.on_timeout = on_await_over;
    loop_timer_after(loop, &connection->timer, AWAIT_MILLISECONDS);
    if (connection->tls == NULL)
        set_low_water(connection, bytes < AWAIT_MOST ? (unsigned)bytes : AWAIT_MOST);
}

static ssize_t send_joined(int fd, const struct iovec *pieces, int count, int flags) {
    char joined[JOIN_MOST], *at = joined;
    for (int i = 0; i < count; i++) {
        memcpy(at, pieces[i].iov_base, pieces[i].iov_len);
        at += pieces[i].iov_len;
    }
    return send(fd, joined, (size_t)(at - joined), flags);
}

/* For few bytes in several places, one copy is faster than a sendmsg with several pieces. */
static ssize_t send_pieces(int fd, const struct iovec *pieces, int count, int flags) {
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count};
    size_t length = 0;
    if (count == 1)
        return send(fd, pieces->iov_base, pieces->iov_len, flags);
    for (int i = 0; i < count; i++)
        length += pieces[i].iov_len;
    return length <= JOIN_MOST ? send_joined(fd, pieces, count, flags)
                               : sendmsg(fd, &message, flags);
}

static enum io_status write_secured(struct connection *connection, const struct iovec *pieces,
                                    int count, bool more, size_t *put) {
    enum io_status status = tls_stream_write(connection->tls, pieces, count, more, put);
    if (status == IO_WAIT)
        connection->writable = false;
    return status;
}

static enum io_status connection_write_pieces(struct connection *connection,
                                              const struct iovec *pieces, int count, int flags,
                                              size_t *put) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    *put = 0;
    ssize_t sent;
    if (connection->tls != NULL)
        return write_secured(connection, pieces, count, (flags & MSG_MORE) != 0, put);
    do
        sent = send_pieces(connection->event.fd, pieces, count, MSG_NOSIGNAL | flags);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) {
        *put = (size_t)sent;
        return IO_DONE;
    }
    if (errno != EAGAIN)
        return IO_FAILED;
    connection->writable = false;
    return IO_WAIT;
}

enum io_status connection_write(struct connection *connection, const struct iovec *pieces,
                                int count, size_t *put) {
    return connection_write_pieces(connection, pieces, count, 0, put);
}

enum io_status connection_write_more(struct connection *connection, const struct iovec *pieces,
                                     int count, size_t *put) {
    return connection_write_pieces(connection, pieces, count, MSG_MORE, put);
}

enum io_status connection_copy_file(struct connection *connection, int fd, off_t offset,
                                    size_t length, size_t *put) {
    enum { PIECE = 64 * 1024 };
    char bytes[PIECE];
    *put = 0;
    ssize_t got = pread(fd, bytes, length < PIECE ? length : PIECE, offset);
    if (got <= 0)
        return got == 0 ? IO_END : IO_FAILED;
    struct iovec piece = {bytes, (size_t)got};
    return connection_write(connection, &piece, 1, put);
}

enum io_status connection_send_file(struct connection *connection, int fd, off_t *offset,
                                    size_t length, size_t *put) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    ssize_t sent;
    if (connection->tls != NULL && !tls_stream_is_in_kernel(connection->tls)) {
        enum io_status status = connection_copy_file(connection, fd, *offset, length, put);
        *offset += (off_t)*put;
        return status;
    }
    *put = 0;
    if (connection->tls != NULL) {
        enum io_status status = tls_stream_flush(connection->tls);
        connection->writable = status != IO_WAIT;
        if (status != IO_DONE)
            return status;
    }
    do
        sent = sendfile(connection->event.fd, fd, offset, length);
    while (sent < 0 && errno == EINTR);
    if (sent > 0) {
        *put = (size_t)sent;
        return IO_DONE;
    }
    if (sent == 0)
        return IO_END;
    if (errno != EAGAIN)
        return IO_FAILED;
    connection->writable = false;
    return IO_WAIT;
}

void connection_keep_alive(struct connection *connection) {
    int on = 1, seconds = 1, probes = 120;
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    int fd = connection->event.fd;
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

void connection_limit_unsent(struct connection *connection, int bytes) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    setsockopt(connection->event.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

/* TCP_USER_TIMEOUT would not do: it counts a window that stays closed as silence, although the
 * other side answers. */
struct connection_signs connection_signs(const struct connection *connection) {
    struct connection_signs signs = {0};
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    if (getsockopt(connection->event.fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return signs;
    signs.heard = info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv
                                                                     : info.tcpi_last_data_recv;
    /* A host that can't take more data acknowledges what is sent again, and takes none of it. */
    if (info.tcpi_probes > 0)
        signs.asked = info.tcpi_probes;
    else if (info.tcpi_last_ack_recv > info.tcpi_last_data_sent)
        signs.asked = info.tcpi_retransmits;
    if (signs.asked > 0)
        signs.unanswered = info.tcpi_last_ack_recv > 0 ? info.tcpi_last_ack_recv : 1;
    return signs;
}

void connection_shutdown(struct connection *connection) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    connection->ending = connection->tls != NULL;
    if (connection->ending)
        end_when_sent(connection);
    else
        shutdown(connection->event.fd, SHUT_WR);
}
