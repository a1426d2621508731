#include "net/connection.h"

#include "base/assert.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { INTEREST = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };

static void on_event(struct event *event, uint32_t events) {
    struct connection *connection = CONTAINER_OF(event, struct connection, event);
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        connection->hangup = true;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        connection->readable = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        connection->writable = true;
    connection->on_ready(connection);
}

struct connection *connection_new(struct net_context *net, int *fdp, connection_ready_fn *on_ready,
                                  void *owner) {
    int fd = *fdp;
    *fdp = -1;
    struct connection *connection;
    ALLOC_OBJ(connection, CONNECTION_MAGIC);
    connection->net = net;
    connection->on_ready = on_ready;
    connection->owner = owner;
    list_init(&connection->pool_link);
    timer_init(&connection->pool_timer, NULL);
    if (loop_add(net->loop, &connection->event, fd, INTEREST, on_event))
        return connection;
    close(fd);
    FREE_OBJ(connection);
    return NULL;
}

void connection_set_owner(struct connection *connection, connection_ready_fn *on_ready,
                          void *owner) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    connection->on_ready = on_ready;
    connection->owner = owner;
}

void connection_close(struct connection **connectionp) {
    struct connection *connection = *connectionp;
    *connectionp = NULL;
    if (connection == NULL)
        return;
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    int fd = connection->event.fd;
    timer_cancel(&connection->net->loop->timers, &connection->pool_timer);
    list_remove(&connection->pool_link);
    loop_remove(connection->net->loop, &connection->event);
    close(fd);
    FREE_OBJ(connection);
}

void connection_abort(struct connection **connectionp) {
    if (*connectionp == NULL)
        return;
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt((*connectionp)->event.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    connection_close(connectionp);
}

enum io_status connection_read(struct connection *connection, char *buffer, size_t capacity,
                               size_t *got) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    *got = 0;
    ssize_t count;
    do
        count = recv(connection->event.fd, buffer, capacity, 0);
    while (count < 0 && errno == EINTR);
    if (count > 0) {
        *got = (size_t)count;
        /* Less than asked for: the socket is empty, and the edge will come with the next byte. */
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

enum io_status connection_write(struct connection *connection, const struct iovec *pieces,
                                int count, size_t *put) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count};
    *put = 0;
    ssize_t sent;
    do
        sent = count == 1
                   ? send(connection->event.fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL)
                   : sendmsg(connection->event.fd, &message, MSG_NOSIGNAL);
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

enum io_status connection_send_file(struct connection *connection, int fd, off_t *offset,
                                    size_t length, size_t *put) {
    CHECK_OBJ(connection, CONNECTION_MAGIC);
    ssize_t sent;
    *put = 0;
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

void connection_shutdown(struct connection *connection) {
    shutdown(connection->event.fd, SHUT_WR);
}
