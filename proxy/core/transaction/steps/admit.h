/*
 * ADMIT: decides whether the listener serves such a request. PURGE and BAN, which are for caches, are served where
 * a part has the step PURGE.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEPS_ADMIT_H
#define RETORT_TRANSACTION_STEPS_ADMIT_H

#include "http/head.h"
#include "transaction/step.h"

struct transaction;

/* Is the method one of these two, in the only spelling that counts? */
static inline bool admit_is_purge(const struct http_head *request) {
    return request->method_id == HTTP_METHOD_PURGE || request->method_id == HTTP_METHOD_BAN;
}
enum step admit_refuse_purge(struct transaction *transaction);

#endif
