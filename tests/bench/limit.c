/*
 * The limit: what this machine allows a server that does nothing but answer. A loop of epoll in one
 * thread that takes whatever it receives for one request and sends the same response every time:
 * one recv and one send, no parsing, no look-up. What a proxy is measured against.
 *
 *     limit PORT BYTES            a body of so many bytes, connections kept
 *     limit PORT BYTES close      each connection closed behind its response
 *
 * Closed connections are read from as soon as they are accepted, for which the kernel keeps them
 * until bytes are there: accept, recv, send, close, and no more.
 */
#include "answerer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool limit_closes;

/* A connection is its own owner; 0 is never one, because standard input has it. */
static void *owner_of(int fd) {
    return (void *)(intptr_t)fd;
}

/* False: there is nothing to answer yet. */
static bool answer(int fd) {
    char request[ANSWERER_REQUEST];
    ssize_t got = recv(fd, request, sizeof request, 0);
    if (got < 0 && errno == EAGAIN)
        return false;
    ssize_t sent = got <= 0 ? got : send(fd, answerer.bytes, answerer.length, MSG_NOSIGNAL);
    if (limit_closes || sent <= 0)
        close(fd);
    return true;
}

static void on_accepted(int fd) {
    if (!limit_closes || !answer(fd))
        answerer_watch(fd, EPOLLIN | EPOLLRDHUP | EPOLLET, owner_of(fd));
}

static void on_ready(void *owner) {
    answer((int)(intptr_t)owner);
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: %s PORT BYTES [close]\n", arguments[0]);
        return EXIT_FAILURE;
    }
    limit_closes = count > 3 && strcmp(arguments[3], "close") == 0;
    answerer_make_response(strtoul(arguments[2], NULL, 10),
                           limit_closes ? "Connection: close\r\n" : "");
    answerer_listen((uint16_t)atoi(arguments[1]), limit_closes);
    answerer_run(on_accepted, on_ready);
}
