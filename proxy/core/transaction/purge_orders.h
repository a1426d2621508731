/*
 * Orders of clients to remove stored responses (the methods PURGE and BAN). Each is carried out by
 * one thread for all workers, because it is done only when the disks have it.
 *
 *     struct purge_order *order = purge_orders_send(orders, PURGE_ONE, url, regex, mailbox, &task);
 *     if (order == NULL) ...                              too many wait
 *     if (order->done) ...                                the task has run: kept and count say what
 *     purge_order_leave(&order);                          at any time
 *
 * An order that its client has left is carried out all the same.
 *
 * The same thread tells a process that takes over what unsafe requests have removed here, because it
 * may have stored that, or read it from the disks:
 *
 *     purge_orders_note(orders);                     from now on removals are noted
 *     if (!purge_orders_tell(orders, fd)) ...        they are told, and from now on each one at once
 *     purge_orders_forget(orders);                   nobody takes over after all
 *
 * Threads: purge_orders_send and purge_order_leave from any worker; an order belongs to the worker
 * that has sent it.
 */
#ifndef RETORT_TRANSACTION_PURGE_ORDERS_H
#define RETORT_TRANSACTION_PURGE_ORDERS_H

#include "base/list.h"
#include "base/slice.h"
#include "event/mailbox.h"

struct cache;
struct second_level;
struct purge_orders;

enum { PURGE_ORDERS_MAX = 128, PURGE_TOLD_MAX = 10000 };

enum purge_order_kind {
    PURGE_ONE,   /* all variants of the response with the name */
    PURGE_BELOW, /* all whose URLs begin with it, and match the regular expression if there is one */
    PURGE_ELSEWHERE, /* it is removed here: what takes over is told */
};

struct purge_order {
    struct message message;
    struct list_link link;
    enum purge_order_kind kind;
    char *url;
    size_t url_length;
    char *regex; /* NULL: none */
    struct mailbox *mailbox;
    struct task *waker; /* NULL: nobody waits any more */
    bool done;
    bool kept;    /* a restart does not undo it; of PURGE_ELSEWHERE: it was told */
    bool counted; /* `count` is the number of responses removed */
    bool retired; /* another process serves, and may have them (purge_orders_retire) */
    uint64_t count;
};

struct purge_orders *purge_orders_new(struct cache *cache, struct second_level *second_level);
/* Another process is about to take over: what unsafe requests remove is noted, at most PURGE_TOLD_MAX
 * names. These three from one thread. */
void purge_orders_note(struct purge_orders *orders);
/* It is about to serve, and hears at `fd`, which belongs to the orders then; -1: it does not hear.
 * Orders of clients are refused from now on, since what is removed here stays stored there. Returns
 * after it has been told what was noted. False: it could not be told. */
bool purge_orders_tell(struct purge_orders *orders, int fd);
/* It does not take over. */
void purge_orders_forget(struct purge_orders *orders);
/* An unsafe request has removed this name. Returns an order that tells the process that takes over,
 * to wait for. NULL: there is no such process yet, or (*untold) it can't be told. */
struct purge_order *purge_orders_removed(struct purge_orders *orders, struct slice url,
                                         struct mailbox *mailbox, struct task *waker, bool *untold);
/* For a name that another process has told to this one. Waits until it is told on. */
void purge_orders_pass_on(struct purge_orders *orders, struct slice url);
/* Ends the thread, before the mailboxes of the workers end. Orders that wait are dropped. */
void purge_orders_stop(struct purge_orders *orders);
void purge_orders_free(struct purge_orders **ordersp);
/* Copies the texts. `url` is the stored response's name (cache/name.h). NULL: too many orders wait,
 * or there is no thread. */
struct purge_order *purge_orders_send(struct purge_orders *orders, enum purge_order_kind kind,
                                      struct slice url, struct slice regex, struct mailbox *mailbox,
                                      struct task *waker);
void purge_order_leave(struct purge_order **orderp);

#endif
