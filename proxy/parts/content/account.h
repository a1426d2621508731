/*
 * An account: one instance of a service in the room of content, with its operations and its limits.
 *
 *     struct content_account *account = content_account_open(room, "gray", &limits, numbers);
 *     struct service_content *operation = content_account_start(account, &order);
 *     ... common/service/content.h ...
 *     content_account_close(&account);                after the service's stop
 *
 * At a reload the new instance has an account of its own and goes on with the same numbers. The
 * operations of the old one go on too.
 *
 * Threads: any, but for open and close, which one thread calls. Memory: an account lives until its
 * last operation is gone.
 */
#ifndef RETORT_CONTENT_ACCOUNT_H
#define RETORT_CONTENT_ACCOUNT_H

#include "cache/content_numbers.h"
#include "content/executor.h"
#include "net/address.h"

struct content_limits {
    unsigned operations;
    size_t object, memory; /* bytes */
    uint64_t timeout;      /* of a fetch, milliseconds */
    struct address as;     /* the service's own requests come from here; length 0: 127.0.0.1 */
    struct address via;    /* and to this listener; length 0: the first one that takes them */
};

struct content_account {
    unsigned magic;
#define CONTENT_ACCOUNT_MAGIC 0xc0470046u
    struct content_executor *room;
    char *name;
    struct content_limits limits;
    struct content_numbers *numbers; /* referenced */
    /* Under the room's lock. */
    struct list_link link, turn;          /* of the room */
    struct list_link operations, waiting; /* all; and those that wait for the thread */
    unsigned count;                       /* of all */
    size_t held;                          /* bytes of them */
    bool closed;
};

/* Takes a reference on the numbers. */
struct content_account *content_account_open(struct content_executor *room, const char *name,
                                             const struct content_limits *limits,
                                             struct content_numbers *numbers);
void content_account_close(struct content_account **accountp);
/* NULL: the service has as many as it may, or the machine has no more descriptors. */
struct service_content *content_account_start(struct content_account *account,
                                              const struct service_content_order *order);

/* Inside the room, under its lock. */
/* Holds so many bytes more. False: they are too many. */
bool content_account_hold(struct content_account *account, size_t bytes);
void content_account_let(struct content_account *account, size_t bytes);
/* The last operation of a closed account frees it. */
void content_account_left(struct content_account *account);

#endif
