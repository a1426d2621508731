/*
 * What rules change in heads on their way, beside what services change. A part has the rules, and settings->head_changes are
 * its functions. Each is called only where the settings say that there are such rules:
 *
 *     if (settings->changes_replies)
 *         settings->head_changes->reply(transaction);
 *
 * The request of a client is changed by a step of the part.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_HEAD_CHANGES_H
#define RETORT_TRANSACTION_HEAD_CHANGES_H

#include "http/head.h"
#include "transaction/step.h"

struct head_changes {
    /* changes_outgoing: the request for the origin, right before it is sent. False: the head can't be changed as the rules
     * want it, and must not be used (fail_to_change). */
    bool (*outgoing)(struct transaction *transaction, struct http_head *head);
    /* Likewise: does a rule that applies to that request depend on who asks? */
    bool (*tells_class)(struct transaction *transaction);
    /* Likewise: may a rule change the field of that name, in a way that the cache can't tell from the URL? */
    bool (*hides_selector)(struct transaction *transaction, struct slice name);
    /* changes_responses: transaction->response as it has come from the origin, a 304 that confirms a stored one as well.
     * STEP_NEXT, or where a page goes that says why it can't be changed. */
    enum step (*response)(struct transaction *transaction);
    /* changes_replies: the reply, right before it is delivered. */
    void (*reply)(struct transaction *transaction);
};

#endif
