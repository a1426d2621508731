/*
 * The limit: what this machine allows a server that does nothing but answer. A loop of epoll in one
 * thread that takes whatever it receives for one request and sends the same response every time:
 * one recv and one send, no parsing, no look-up. What a proxy is measured against.
 *
 *     limit PORT BYTES            a body of so many bytes, 0123456789 over and over, connections
 * kept limit PORT BYTES close      each connection closed behind its response
 *
 * Closed connections are read from as soon as they are accepted, for which the kernel keeps them
 * until bytes are there: accept, recv, send, close, and no more.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096, BATCH = 256, REQUEST = 16384, HEAD = 512, ACCEPT_BATCH = 64 };

static struct {
    int listener, epoll;
    bool closes;
    char *bytes; /* the response */
    size_t length;
} limit;

static void need(bool good, const char *what) {
    if (good)
        return;
    perror(what);
    exit(EXIT_FAILURE);
}

static void make_response(size_t body) {
    limit.bytes = malloc(HEAD + body);
    need(limit.bytes != NULL, "malloc");
    int head = snprintf(limit.bytes, HEAD,
                        "HTTP/1.1 200 OK\r\n"
                        "Server: limit\r\n"
                        "Date: Sat, 21 Nov 2026 07:00:00 GMT\r\n"
                        "Content-Type: text/plain\r\n"
                        "Cache-Control: max-age=86400\r\n"
                        "Content-Length: %zu\r\n%s\r\n",
                        body, limit.closes ? "Connection: close\r\n" : "");
    for (size_t i = 0; i < body; i++)
        limit.bytes[(size_t)head + i] = (char)('0' + i % 10);
    limit.length = (size_t)head + body;
}

static void open_listener(uint16_t port) {
    int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = limit.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (limit.closes)
        setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof on);
    need(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    need(listen(fd, BACKLOG) == 0, "listen");
}

static void watch(int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    need(epoll_ctl(limit.epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

/* False: there is nothing to answer yet. */
static bool answer(int fd) {
    char request[REQUEST];
    ssize_t got = recv(fd, request, sizeof request, 0);
    if (got < 0 && errno == EAGAIN)
        return false;
    ssize_t sent = got <= 0 ? got : send(fd, limit.bytes, limit.length, MSG_NOSIGNAL);
    if (limit.closes || sent <= 0)
        close(fd);
    return true;
}

static void accept_some(void) {
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(limit.listener, NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0)
            return;
        if (!limit.closes || !answer(fd))
            watch(fd, EPOLLIN | EPOLLRDHUP | EPOLLET);
    }
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: %s PORT BYTES [close]\n", arguments[0]);
        return EXIT_FAILURE;
    }
    limit.closes = count > 3 && strcmp(arguments[3], "close") == 0;
    make_response(strtoul(arguments[2], NULL, 10));
    open_listener((uint16_t)atoi(arguments[1]));
    limit.epoll = epoll_create1(0);
    need(limit.epoll >= 0, "epoll_create1");
    watch(limit.listener, EPOLLIN);
    for (;;) {
        struct epoll_event events[BATCH];
        int ready = epoll_wait(limit.epoll, events, BATCH, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == limit.listener)
                accept_some();
            else
                answer(events[i].data.fd);
        }
    }
}
