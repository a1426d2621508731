#include "transaction/transaction.h"

#include "cache/conditional.h"

#include <stdio.h>

/* LOOKUP: is there a stored response that this request may have (RFC 9111 §4)? */

static bool matter_for_cache(const struct transaction *transaction) {
    const struct http_head *request = transaction->request;
    return (request->method_id == HTTP_METHOD_GET || request->method_id == HTTP_METHOD_HEAD) &&
           transaction->request_body == NULL && transaction->exchange->framing.kind == FRAMING_NONE;
}

/* The stored response goes out, or the word that the client's copy is still good. */
static enum step hit(struct transaction *transaction, enum cache_result result) {
    transaction->result = result;
    if (result != RESULT_REVALIDATED)
        transaction->net->counters.cache_hits++;
    return STEP_DELIVER;
}

/* An unsafe method may have changed what is stored (RFC 9111 §4.4): done when it has succeeded. */
static enum step pass(struct transaction *transaction) {
    transaction->result = RESULT_PASS;
    return STEP_FETCH;
}

static enum step miss(struct transaction *transaction) {
    transaction->result = RESULT_MISS;
    transaction->net->counters.cache_misses++;
    return STEP_FETCH;
}

static enum step only_if_cached(struct transaction *transaction) {
    return transaction_fail(transaction, 504,
                            "the client asked for a stored response, and there is none");
}

enum step step_lookup(struct transaction *transaction) {
    if (transaction->is_connect || !matter_for_cache(transaction))
        return pass(transaction);
    transaction->cache_allowed = true;
    transaction->key = cache_key_of(transaction->url_text);
    cache_control_parse(&transaction->asked, transaction->request);
    transaction->object =
        cache_lookup(transaction->host->cache, transaction->key, transaction->request);
    if (transaction->object == NULL)
        return transaction->asked.only_if_cached ? only_if_cached(transaction) : miss(transaction);
    if (body_state(transaction->object->body) == BODY_FAILED) {
        object_release(&transaction->object);
        return miss(transaction);
    }
    switch (freshness_judge(&transaction->object->freshness, &transaction->asked,
                            transaction->net->loop->wall)) {
    case FRESHNESS_FRESH: return hit(transaction, RESULT_HIT);
    case FRESHNESS_STALE_ALLOWED: return hit(transaction, RESULT_STALE);
    case FRESHNESS_REVALIDATE: break;
    }
    if (transaction->asked.only_if_cached)
        return only_if_cached(transaction);
    transaction->revalidating =
        transaction->object->etag.base != NULL || transaction->object->last_modified != 0;
    return miss(transaction);
}
