/*
 * Caching: whether and how the cache takes part in a transaction, and under which name.
 *
 *     if (caching_begin(transaction)) {             LOOKUP
 *         caching_take_name(transaction);
 *         caching_ask_by_name(transaction);
 *     }
 *     caching_review(transaction, response);        STORE: what the policies say of the response
 *     struct freshness_rules rules = caching_freshness_rules(transaction, response);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_CACHING_H
#define RETORT_TRANSACTION_CACHING_H

#include "cache/cache_control.h"
#include "cache/freshness.h"
#include "cache/name.h"
#include "cache/object.h"
#include "settings/policy.h"

/* Written by caching.c. */
struct caching {
    bool allowed;                      /* LOOKUP has found that the cache takes part */
    const struct cache_policy *policy; /* NULL: none is for this */
    const uint64_t *rules;             /* by which it was found; NULL: none was looked for */
    struct cache_control control;      /* the request's */
    struct cache_name name;            /* what is stored, or is to be stored, has it */
};

struct transaction;

/* Decides by which policy the cache works, and applies what the policy says about the request.
 * False: the cache takes no part. */
bool caching_begin(struct transaction *transaction);
/* As caching_begin, for a POST whose answer may be stored; nothing is looked up for it. */
bool caching_begin_post(struct transaction *transaction);
/* The name under which responses to this URL are stored with that policy. */
void caching_take_name(struct transaction *transaction);
/* Does the origin get only the part of the query that is in the name? */
bool caching_sends_name(const struct transaction *transaction);
/* From here on the request is for the URL in its name, unless the policy sends the whole URL.
 * Otherwise a part of the URL that the policy takes out could decide what other clients get. */
void caching_ask_by_name(struct transaction *transaction);
/* The response is there: applies the policies for its content type too. */
void caching_review(struct transaction *transaction, const struct http_head *response);
/* The policy for a response that is stored already; it changes nothing. NULL: none. */
const struct cache_policy *caching_policy_for(struct transaction *transaction,
                                              const struct http_head *response);
/* May others get the cookies that a response with that policy sets? NULL: there is none. */
bool caching_stores_cookies(const struct cache_policy *policy);
/* The head under which the response is stored: without its cookies, which are for one client,
 * unless a policy says otherwise. Where a policy wants nobody to have them, `response` loses them
 * too. */
struct http_head *caching_head_to_store(struct transaction *transaction,
                                        struct http_head *response);
/* Does the response to this transaction's own request set cookies, which a stored response that
 * stands for it does not have? */
bool caching_gives_cookies(const struct transaction *transaction);
unsigned caching_max_variants(const struct transaction *transaction);
/* For a response with this head to this request. */
struct freshness_rules caching_freshness_rules(struct transaction *transaction,
                                               const struct http_head *response);
/* The clients that a response to this request is for. */
enum object_scope caching_scope(const struct transaction *transaction);

#endif
