/*
 * HTTP/1 and, in a build with the part http2, HTTP/2 toward a client between two ends that a test has in its hands: a
 * client's socket, and a transaction that reads each request with its body and replies as it is told.
 *
 *     struct client_lab *lab = client_lab_open("client { max_requests = 2 }\n");
 *     client_lab_send(lab, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
 *     ck_assert_str_eq(lab->log, "GET /a\n");                        and "sent" when it is over
 *     ck_assert_str_eq(client_lab_received(lab), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/a");
 *     client_lab_pass(lab, 61000);                                   time, without waiting
 *     ck_assert(client_lab_is_closed(lab));
 *     client_lab_close(lab);                                         nothing may be left over
 *
 * The loop is run until nothing happens any more, after each of these calls. Threads: one.
 */
#ifndef RETORT_TESTS_UNIT_PROXY_CLIENT_LAB_H
#define RETORT_TESTS_UNIT_PROXY_CLIENT_LAB_H

#include "suites.h"

#include "client/http1/http1.h"
#include "transaction/transaction.h"

enum { CLIENT_LAB_RECEIVED = 8 << 20, CLIENT_LAB_LOG = 1 << 20 };

struct client_lab;

/* A request that has come with its body, and what is replied. */
struct asked {
    struct client_lab *lab;
    struct exchange *exchange;
    struct arena arena;
    struct task task;
    struct source *body;
    char *text; /* of the body, `length` bytes and a NUL */
    size_t length;
    bool replied;
    struct reply reply;
};

struct client_lab {
    struct settings *settings;
    struct loop loop;
    struct net_context net;
    struct mailbox mailbox;
    struct client_total total;
    struct clients clients;
    struct http1_host *host;
    struct transaction_host worker; /* clients, and what the part http2 keeps for them */
    struct timer now;
    int fd;     /* the client's; -1: closed */
    bool deaf;  /* it reads nothing but what client_lab_take does */
    bool ended; /* what we sent ends there */
    bool reset; /* it was broken off */
    size_t got;
    char *received;
    size_t logged;
    char *log;     /* a line for each request, and one for its end: "sent" or "aborted" */
    unsigned open; /* requests that have not ended */
    struct asked *last;
    /* What takes requests in place of the lab, and a further peer that the loop runs for: true, it
     * has done something. NULL: none. */
    void (*on_request)(struct exchange *exchange, void *arg);
    bool (*peer)(void *arg);
    void *arg;
    bool reverse; /* connections come to the listener in reverse mode */
    /* Sends the reply to a request that has come; set by a test, or the default. */
    void (*answer)(struct asked *asked);
    bool wait_for_body; /* it is read before the answer; else it is not asked for */
};

/* `settings` are more sections of a configuration. */
struct client_lab *client_lab_open(const char *settings);
void client_lab_close(struct client_lab *lab);
/* A further connection of a client in place of the one there was, which is closed. */
void client_lab_connect(struct client_lab *lab);
void client_lab_send(struct client_lab *lab, const char *text);
void client_lab_send_bytes(struct client_lab *lab, struct slice bytes);
/* Without a look at what comes of it. */
void client_lab_put(struct client_lab *lab, struct slice bytes);
void client_lab_hang_up(struct client_lab *lab);
/* It sends nothing more, and still reads. */
void client_lab_end(struct client_lab *lab);
/* Reads so many bytes, of no interest, and runs the loop. */
void client_lab_take(struct client_lab *lab, size_t bytes);
/* All that has come since the last call, as text. */
const char *client_lab_received(struct client_lab *lab);
/* We have ended the connection. */
bool client_lab_is_closed(struct client_lab *lab);
void client_lab_run(struct client_lab *lab);
/* So much time passes at once. */
void client_lab_pass(struct client_lab *lab, uint64_t milliseconds);
/* What has been logged since the last call. */
const char *client_lab_logged(struct client_lab *lab);

/* Replies with a stored head and a body of these bytes, of a known length. */
void asked_reply(struct asked *asked, unsigned status, const char *head, const char *body);
/* 200, and the target for a body. */
void asked_reply_target(struct asked *asked);
/* Ends it, as it is. */
void asked_finish(struct asked *asked);
/* Replies with what is in asked->reply. */
void asked_reply_so(struct asked *asked);

#endif
