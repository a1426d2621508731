/*
 * Whole transactions between a client's socket (client_lab.h) and an origin, in one process and on
 * one loop: no services, no disk, a cache of 16 MB. The origin answers all requests with one text.
 *
 *     struct transaction_lab *lab = transaction_lab_open("cache { status_field = true }\n");
 *     lab->reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
 *     transaction_lab_ask(lab, "GET", "/a", "Via: 1.1 other\r\n");
 *     ck_assert_str_eq(transaction_lab_asked(lab), "GET /a HTTP/1.1\r\n...");
 *     ck_assert_str_eq(client_lab_received(lab->client), "HTTP/1.1 200 OK\r\n...");
 *     transaction_lab_close(lab);                     no transaction may be left over
 *
 * In the settings, "@" stands for the origin's host and port. Threads: one.
 */
#ifndef RETORT_TESTS_UNIT_PROXY_TRANSACTION_LAB_H
#define RETORT_TESTS_UNIT_PROXY_TRANSACTION_LAB_H

#include "client_lab.h"

#include "transaction/transaction.h"

enum { TRANSACTION_LAB_ASKED = 1 << 20, TRANSACTION_LAB_ORIGINS = 16 };

struct transaction_lab {
    struct client_lab *client;
    struct transaction_host host;
    struct origin_groups *groups;
    int listening;
    char origin[32]; /* "127.0.0.1:PORT" */
    int fds[TRANSACTION_LAB_ORIGINS];
    unsigned fd_count;
    const char *reply; /* NULL: none, and the request waits */
    size_t got;
    char *asked; /* all that has come to the origin since the last look */
    unsigned requests;
};

struct transaction_lab *transaction_lab_open(const char *settings);
void transaction_lab_close(struct transaction_lab *lab);
/* A request to the forward proxy for a path at the origin, with these field lines. */
void transaction_lab_ask(struct transaction_lab *lab, const char *method, const char *path,
                         const char *fields);
/* What the origin has been sent since the last call; "" for nothing. */
const char *transaction_lab_asked(struct transaction_lab *lab);
/* The origin sends that now, on all its connections. */
void transaction_lab_say(struct transaction_lab *lab, const char *text);
/* The origin closes all its connections. */
void transaction_lab_break(struct transaction_lab *lab);

#endif
