/*
 * RESPMOD_POSTCACHE: asks services that change responses behind the cache. They change each
 * client's copy on its way out, wherever it comes from. The stored response stays as it is.
 *
 *     if (respmod_postcache_answers(transaction))              DELIVER
 *         body = transaction->respmod_postcache->postcache.body;
 *     else
 *         body = respmod_postcache_body(transaction);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_RESPMOD_POSTCACHE_H
#define RETORT_TRANSACTION_STEPS_RESPMOD_POSTCACHE_H

#include "transaction/postcache.h"
#include "transaction/step.h"

enum postcache_result {
    POSTCACHE_UNCHANGED, /* the response goes out as it was */
    POSTCACHE_PASSED,    /* its body has passed through the services, and comes from them */
    POSTCACHE_ADAPTED,   /* head and body are what the services made */
};

/* Written by respmod_postcache.c. */
struct respmod_postcache {
    struct postcache postcache;
    enum postcache_result result;
    struct http_head *head; /* POSTCACHE_ADAPTED */
};

/* Does the client get what services made of the response? */
bool respmod_postcache_answers(const struct transaction *transaction);
/* The body of a response that is not stored, as the client is to get it. */
struct body *respmod_postcache_body(const struct transaction *transaction);
bool respmod_postcache_is_needed(const struct settings *settings);
/* Does a service behind the cache want the response on its way to the client? */
bool respmod_postcache_is_wanted(struct transaction *transaction);
/* May a service behind the cache want the response, whatever it will turn out to be? */
bool respmod_postcache_may_want(struct transaction *transaction);

#endif
