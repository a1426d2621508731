/*
 * Invalidates stored responses that an unsafe method may have changed (RFC 9111 §4.4): the target,
 * and the URLs in Location and Content-Location on the same origin.
 *
 *     invalidate_stored(transaction);
 *     if (transaction->told != NULL && !invalidate_is_told(transaction)) ...    wait for its task
 *     invalidate_end(transaction);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_INVALIDATE_H
#define RETORT_TRANSACTION_INVALIDATE_H

#include "transaction/step.h"

#include "base/slice.h"

#include <stdbool.h>

struct mailbox;
struct task;

/* A removal that a process which takes over is told of, since it may have stored that. Writer: the part takeover. */
struct removal_notice {
    bool done;                                    /* its task has run */
    bool told;                                    /* it is removed there */
    void (*leave)(struct removal_notice *notice); /* at any time */
};

/* Who tells that process: the part takeover. */
struct removal_teller {
    /* A request has removed this name. Returns what is to be waited for. NULL: there is no such process yet,
     * or (*untold) it can't be told. */
    struct removal_notice *(*removed)(struct removal_teller *teller, struct slice url,
                                      struct mailbox *mailbox, struct task *waker, bool *untold);
    /* Does that process serve, so that what is removed here stays stored there, unless it is told? */
    bool (*are_elsewhere)(const struct removal_teller *teller);
};

/* Drops what the request's success has made stale (RFC 9111 §4.4). While another process takes over,
 * it has to drop that too: transaction->told is the order that tells it, to be waited for before the
 * client learns of the success. */
void invalidate_stored(struct transaction *transaction);
/* True: it is told, or can't be, which is counted. */
bool invalidate_is_told(struct transaction *transaction);
/* Does another process serve, which is not told of what orders of clients (PURGE) remove? */
bool invalidate_is_in_vain(const struct transaction *transaction);
/* May be called again. */
void invalidate_end(struct transaction *transaction);

#endif
