/* A connection that knows how much is to come. */
#include "suites.h"

#include "net/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop loop;
static struct net_context net = {.loop = &loop};
static struct connection *connection;
static int other = -1; /* the end that writes */
static unsigned told;

static void on_ready(struct connection *ready) {
    told += ready->readable;
}

/* Over TCP: the kernel keeps a low water mark there. */
static void open_pair(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int on = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(loop_init(&loop));
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listening, 1), 0);
    getsockname(listening, (struct sockaddr *)&address, &length);
    other = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(other, (struct sockaddr *)&address, length), 0);
    setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
    close(listening);
    connection = connection_new(&net, &fd, on_ready, NULL);
    ck_assert_ptr_nonnull(connection);
    loop_run_once(&loop); /* it is writable: that is told at once */
    told = 0;
}

static void close_pair(void) {
    connection_close(&connection);
    close(other);
    loop_release(&loop);
}

static void write_bytes(size_t length) {
    static const char bytes[200000];
    ck_assert_int_eq(send(other, bytes, length, 0), (ssize_t)length);
}

/* Would the loop hear of it? Bytes on the loopback are there when they have been sent. */
static bool is_readable(void) {
    struct pollfd watched = {.fd = connection->event.fd, .events = POLLIN};
    return poll(&watched, 1, 0) == 1;
}

static size_t read_all(void) {
    char bytes[8192];
    size_t got, sum = 0;
    while (connection_read(connection, bytes, sizeof bytes, &got) == IO_DONE)
        sum += got;
    return sum;
}

START_TEST(pieces_are_awaited_together) {
    open_pair();
    connection_await(connection, 20000);
    for (int i = 0; i < 4; i++) {
        write_bytes(4000);
        ck_assert(!is_readable());
    }
    write_bytes(4000);
    ck_assert(is_readable());
    while (told == 0)
        loop_run_once(&loop);
    ck_assert_uint_eq(read_all(), 20000);
    connection_await(connection, 1);
    write_bytes(1);
    ck_assert(is_readable());
    close_pair();
}
END_TEST

/* Nothing else will ever wake this loop: it would hang, and the test time out. */
START_TEST(what_does_not_come_is_not_awaited_long) {
    open_pair();
    for (int i = 0; i < 3; i++) {
        told = 0;
        connection_await(connection, 1000000);
        write_bytes(10);
        while (told == 0)
            loop_run_once(&loop);
        ck_assert_uint_eq(read_all(), 10);
    }
    close_pair();
}
END_TEST

START_TEST(an_end_is_told_at_once) {
    open_pair();
    connection_await(connection, 1000000);
    write_bytes(10);
    shutdown(other, SHUT_WR);
    ck_assert(is_readable());
    while (told == 0)
        loop_run_once(&loop);
    ck_assert_uint_eq(read_all(), 10);
    close_pair();
}
END_TEST

/* The window is full long before all that is awaited has come. */
START_TEST(more_than_the_window_holds_is_no_deadlock) {
    open_pair();
    int small = 4096;
    setsockopt(connection->event.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    size_t sum = 0, sent = 0;
    static const char bytes[60000];
    while (sum < sizeof bytes) {
        told = 0;
        connection_await(connection, sizeof bytes - sum);
        while (told == 0) {
            ssize_t took = send(other, bytes + sent, sizeof bytes - sent, MSG_DONTWAIT);
            sent += took > 0 ? (size_t)took : 0;
            loop_run_once(&loop);
        }
        sum += read_all();
    }
    close_pair();
}
END_TEST

START_TEST(each_byte_is_told_of) {
    open_pair();
    connection_await(connection, 1);
    write_bytes(1);
    ck_assert(is_readable());
    close_pair();
}
END_TEST

/* A program that is being started has copies of all that is open, for a moment: the kernel would go on to
 * report the connection, whose memory is somebody else's by then. */
START_TEST(a_copy_elsewhere_is_not_heard) {
    struct epoll_event seen;
    open_pair();
    int copy = dup(connection->event.fd);
    connection_close(&connection);
    write_bytes(1);
    ck_assert_int_eq(epoll_wait(loop.epoll_fd, &seen, 1, 0), 0);
    close(copy);
    close_pair();
}
END_TEST

Suite *connection_suite(void) {
    const TTest *const tests[] = {
        pieces_are_awaited_together, what_does_not_come_is_not_awaited_long,
        an_end_is_told_at_once,      more_than_the_window_holds_is_no_deadlock,
        each_byte_is_told_of,        a_copy_elsewhere_is_not_heard,
    };
    return suite_of("connection", tests, COUNT_OF(tests));
}
