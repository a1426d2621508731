/*
 * Orders of clients to remove stored responses (the methods PURGE and BAN). Each is carried out by
 * one thread for all workers, because it is done only when the disks have it.
 *
 *     struct purge_order *order = purge_orders_send(orders, PURGE_ONE, url, regex, transaction);
 *     if (order == NULL) ...                              too many wait
 *     if (order->done) ...                                the task has run: kept and count say what
 *     purge_order_leave(&order);                          at any time
 *
 * An order that its client has left is carried out all the same.
 *
 * Threads: purge_orders_send and purge_order_leave from any worker; an order belongs to the worker
 * that has sent it.
 */
#ifndef RETORT_ACCESS_PURGE_ORDERS_H
#define RETORT_ACCESS_PURGE_ORDERS_H

#include "base/list.h"
#include "base/slice.h"
#include "cache/stored.h"
#include "event/mailbox.h"

struct transaction;
struct purge_orders;

enum { PURGE_ORDERS_MAX = 128 };

enum purge_order_kind {
    PURGE_ONE,   /* all variants of the response with the name */
    PURGE_BELOW, /* all whose URLs begin with it, and match the regular expression if there is one */
};

struct purge_order {
    struct message message;
    struct list_link link;
    enum purge_order_kind kind;
    char *url;
    size_t url_length;
    char *regex; /* NULL: none */
    struct content_store store;
    struct mailbox *mailbox;
    struct task *waker; /* NULL: nobody waits any more */
    bool done;
    bool kept;    /* a restart does not undo it */
    bool untold;  /* no other node of the fleet hears of it */
    bool counted; /* `count` is the number of responses removed */
    uint64_t count;
};

/* `parts`: what the parts keep for the process, which lives longer. */
struct purge_orders *purge_orders_new(void *const *parts);
/* Ends the thread, before the mailboxes of the workers end. Orders that wait are dropped. */
void purge_orders_stop(struct purge_orders *orders);
void purge_orders_free(struct purge_orders **ordersp);
/* Copies the texts. `url` is the stored response's name (cache/name.h). The task of the transaction runs when it is done.
 * NULL: too many orders wait, or there is no thread. */
struct purge_order *purge_orders_send(struct purge_orders *orders, enum purge_order_kind kind,
                                      struct slice url, struct slice regex,
                                      struct transaction *transaction);
void purge_order_leave(struct purge_order **orderp);

#endif
