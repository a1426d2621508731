/*
 * Requests inside intercepted TLS connections (client/intercepted.h): which of them are served, and
 * what the part that has opened the connection does about them.
 *
 *     if (bumped_has_page(transaction))
 *         return bumped_class_of(transaction)->answer(transaction);
 *     ...
 *     if (bumped_facts(transaction) != NULL && !bumped_is_for(transaction, &transaction->request.url))
 *         return fail_with(transaction, 421, ...);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_BUMPED_H
#define RETORT_TRANSACTION_BUMPED_H

#include "client/intercepted.h"
#include "http/url.h"
#include "transaction/step.h"

struct transaction;

struct bumped_class {
    /* Answers a request with the page that the connection is there to show. */
    enum step (*answer)(struct transaction *transaction);
    /* The origin was reached, and the connection to it has failed. */
    void (*origin_failed)(struct transaction *transaction);
};

/* What is known of the connection around the request; NULL: it is not intercepted. */
const struct intercepted_facts *bumped_facts(const struct transaction *transaction);
/* The class of that connection; NULL: it is not intercepted. */
const struct bumped_class *bumped_class_of(const struct transaction *transaction);
/* Is every request on this connection answered with the same page? */
bool bumped_has_page(const struct transaction *transaction);
/* Is the request inside an intercepted connection, and the URL for the server of that
 * connection? */
bool bumped_is_for(const struct transaction *transaction, const struct url *url);

#endif
