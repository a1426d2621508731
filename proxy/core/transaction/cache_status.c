#include "transaction/cache_status.h"

#include "transaction/transaction.h"

/* The fields that each delivery adds to a stored head: its age (RFC 9111 §5.1), and how the
 * cache handled the request (RFC 9211). */

static bool is_hit(const struct transaction *transaction) {
    return transaction->outcome.result == RESULT_HIT || transaction->outcome.result == RESULT_STALE;
}

/* "The request method's semantics require the request to be forwarded" for all others. */
static bool is_look_up(const struct http_head *request) {
    return request->method_id == HTTP_METHOD_GET || request->method_id == HTTP_METHOD_HEAD;
}

/* RFC 9211 §2.2: why the request went forward. */
static struct slice forward_reason(const struct transaction *transaction) {
    switch (transaction->outcome.result) {
    case RESULT_MISS:
        return transaction->lookup.part != NULL ? SLICE("; fwd=partial") : SLICE("; fwd=miss");
    case RESULT_REVALIDATED:
        return transaction->caching.control.no_cache ? SLICE("; fwd=request; fwd-status=304")
                                                     : SLICE("; fwd=stale; fwd-status=304");
    case RESULT_REFRESHED:
        return transaction->caching.control.no_cache ? SLICE("; fwd=request")
                                                     : SLICE("; fwd=stale");
    case RESULT_PASS:
        return transaction->caching.allowed || is_look_up(transaction->request.head)
                   ? SLICE("; fwd=bypass")
                   : SLICE("; fwd=method");
    default: return slice_make("", 0);
    }
}

static struct slice hit_fields(struct transaction *transaction, bool status) {
    enum { MORE = 128 }; /* larger than the name */
    struct freshness freshness = object_freshness(transaction_object(transaction));
    struct slice name = slice_from(transaction->settings->name);
    int64_t age = freshness_age(&freshness, transaction->net->loop->wall);
    char *fields = arena_alloc(&transaction->arena, name.length + MORE);
    char *at = slice_put(fields, SLICE("Age: "));
    at = slice_put_number(at, age);
    if (status) {
        at = slice_put(at, SLICE("\r\nCache-Status: "));
        at = slice_put(at, name);
        at = slice_put(at, SLICE("; hit; ttl="));
        at = slice_put_number(at, freshness.lifetime - age);
    }
    at = slice_put(at, SLICE("\r\n"));
    return slice_make(fields, (size_t)(at - fields));
}

/* The field that older caches send: it says whether the body came from the cache. */
static struct slice with_x_cache(struct transaction *transaction, struct slice fields) {
    bool hit = is_hit(transaction) || transaction->outcome.result == RESULT_REVALIDATED;
    struct slice pieces[] = {
        fields,
        hit ? SLICE("X-Cache: HIT from ") : SLICE("X-Cache: MISS from "),
        slice_from(transaction->settings->name),
        SLICE("\r\n"),
    };
    return arena_join(&transaction->arena, pieces, 4);
}

static struct slice forward_fields(struct transaction *transaction, bool status) {
    struct slice age = slice_make("", 0);
    char digits[SLICE_DIGITS];
    if (transaction_object(transaction) != NULL &&
        (transaction->storing.object == NULL || transaction_object(transaction)->initial_age > 0)) {
        struct freshness freshness = object_freshness(transaction_object(transaction));
        age = slice_of_number(digits, freshness_age(&freshness, transaction->net->loop->wall));
    }
    struct slice reason = forward_reason(transaction);
    status = status && reason.length > 0;
    struct slice none = slice_make("", 0);
    struct slice pieces[] = {
        age.length > 0 ? SLICE("Age: ") : none,
        age,
        age.length > 0 ? SLICE("\r\n") : none,
        status ? SLICE("Cache-Status: ") : none,
        status ? slice_from(transaction->settings->name) : none,
        status ? reason : none,
        status && transaction->storing.object != NULL ? SLICE("; stored") : none,
        status ? SLICE("\r\n") : none,
    };
    return arena_join(&transaction->arena, pieces, 8);
}

struct slice cache_status_fields(struct transaction *transaction) {
    bool status = transaction->settings->cache.status_field;
    struct slice fields = transaction_object(transaction) != NULL && is_hit(transaction)
                              ? hit_fields(transaction, status)
                              : forward_fields(transaction, status);
    return transaction->settings->cache.x_cache ? with_x_cache(transaction, fields) : fields;
}
