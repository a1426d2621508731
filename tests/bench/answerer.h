/*
 * The answerer: what servers that do nothing but answer have in common, in clear text or TLS. One
 * response that is always the same, a listener on the loopback, and a loop of epoll around both.
 *
 *     answerer_make_response(1000, "");                    a body of 1000 bytes
 *     answerer_listen(8080, false);
 *     answerer_run(on_accepted, on_ready);                 does not return
 *
 * on_accepted gets each new connection, and watches it with an owner; on_ready gets the owner of
 * each connection on which something happened. What can't go on ends the program.
 */
#ifndef RETORT_BENCH_ANSWERER_H
#define RETORT_BENCH_ANSWERER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

enum { ANSWERER_REQUEST = 16384 }; /* bytes that are read at a time */

struct answerer {
    int listener, epoll;
    char *bytes; /* the response */
    size_t length;
};

extern struct answerer answerer;

/* Ends the program unless `good`. */
void answerer_need(bool good, const char *what);
/* `fields`: lines for the head, each with its end. The body is 0123456789 over and over. */
void answerer_make_response(size_t body, const char *fields);
/* `deferred`: the kernel keeps connections until bytes are there. */
void answerer_listen(uint16_t port, bool deferred);
/* `owner` is not NULL. */
void answerer_watch(int fd, uint32_t events, void *owner);
void answerer_run(void (*on_accepted)(int fd), void (*on_ready)(void *owner));

#endif
