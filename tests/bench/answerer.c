#include "answerer.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { BACKLOG = 4096, BATCH = 256, HEAD = 512, ACCEPT_BATCH = 64 };

struct answerer answerer;

void answerer_need(bool good, const char *what) {
    if (good)
        return;
    perror(what);
    exit(EXIT_FAILURE);
}

void answerer_make_response(size_t body, const char *fields) {
    answerer.bytes = malloc(HEAD + body);
    answerer_need(answerer.bytes != NULL, "malloc");
    int head = snprintf(answerer.bytes, HEAD,
                        "HTTP/1.1 200 OK\r\n"
                        "Server: limit\r\n"
                        "Date: Sat, 21 Nov 2026 07:00:00 GMT\r\n"
                        "Content-Type: text/plain\r\n"
                        "Cache-Control: max-age=86400\r\n"
                        "Content-Length: %zu\r\n%s\r\n",
                        body, fields);
    for (size_t i = 0; i < body; i++)
        answerer.bytes[(size_t)head + i] = (char)('0' + i % 10);
    answerer.length = (size_t)head + body;
}

void answerer_listen(uint16_t port, bool deferred) {
    int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = answerer.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (deferred)
        setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof on);
    answerer_need(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    answerer_need(listen(fd, BACKLOG) == 0, "listen");
    answerer.epoll = epoll_create1(0);
    answerer_need(answerer.epoll >= 0, "epoll_create1");
    answerer_watch(fd, EPOLLIN, NULL);
}

void answerer_watch(int fd, uint32_t events, void *owner) {
    struct epoll_event event = {.events = events, .data.ptr = owner};
    answerer_need(epoll_ctl(answerer.epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

static void accept_some(void (*on_accepted)(int fd)) {
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(answerer.listener, NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0)
            return;
        on_accepted(fd);
    }
}

void answerer_run(void (*on_accepted)(int fd), void (*on_ready)(void *owner)) {
    for (;;) {
        struct epoll_event events[BATCH];
        int ready = epoll_wait(answerer.epoll, events, BATCH, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr == NULL)
                accept_some(on_accepted);
            else
                on_ready(events[i].data.ptr);
        }
    }
}
