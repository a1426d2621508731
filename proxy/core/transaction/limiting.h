/*
 * Limiting: what bounds the request of a client, beside its rules. A part counts what clients use, and has a struct
 * limiting for each request that it bounds; exchange.paces bound the bytes (client/pace.h). For example, in DELIVER:
 *
 *     if (transaction->limiting != NULL)
 *         transaction->limiting->class->refuse_reply(transaction);
 *
 * Threads: the worker's. Memory: the part's.
 */
#ifndef RETORT_TRANSACTION_LIMITING_H
#define RETORT_TRANSACTION_LIMITING_H

#include "transaction/step.h"

struct limiting_class {
    /* For DELIVER: where the reply's body is longer than the client may have, the reply is made a page. */
    void (*refuse_reply)(struct transaction *transaction);
    /* The request's body is longer than it may be (exchange.body_too_large): the page that says so. */
    enum step (*refuse_request)(struct transaction *transaction);
    /* The request is over: notes why the reply was broken off, if that is so (exchange.reply_too_large). */
    void (*note_end)(struct transaction *transaction);
};

/* Written by ../../parts/limits/step.c. */
struct limiting {
    const struct limiting_class *class;
};

#endif
