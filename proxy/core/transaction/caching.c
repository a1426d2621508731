#include "transaction/caching.h"

#include "cache/key.h"
#include "transaction/access.h"
#include "transaction/disclosed_identity.h"
#include "transaction/internal.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"

/* The cache policies that apply to this transaction. */

/* NULL: none applies. */
static const struct cache_policy *resolved_policy(struct transaction *transaction,
                                                  const uint64_t *rules) {
    const struct settings *settings = transaction->settings;
    if (rules_before(rules, settings->policy_count) == 0)
        return NULL;
    struct cache_policy *policy = arena_alloc(&transaction->arena, sizeof *policy);
    policy_resolve(settings->policies, settings->policy_count, rules, policy);
    return policy;
}

/* The policies for a response are chosen among those that the request had as it came to the cache:
 * once a policy has shortened the URL, its own class may not match that URL any more. */
static const struct cache_policy *resolve_for_response(struct transaction *transaction,
                                                       const struct http_head *response) {
    const uint64_t *rules = transaction->caching.rules;
    if (rules == NULL)
        rules = request_rules(transaction);
    return resolved_policy(transaction,
                           rules_with_type(transaction->settings->rules, rules,
                                           http_head_value(response, HTTP_CONTENT_TYPE),
                                           &transaction->arena));
}

static void ignore_no_cache(struct cache_control *asked) {
    asked->no_cache = false;
    if (asked->max_age == 0)
        asked->max_age = -1;
}

/* Apart from its caller, so that a request without policies saves no registers. */
__attribute__((noinline)) static bool begin_by_policy(struct transaction *transaction) {
    transaction->caching.rules = request_rules(transaction);
    transaction->caching.policy =
        resolved_policy(transaction, request_rules_without_type(transaction));
    const struct cache_policy *policy = transaction->caching.policy;
    if (policy == NULL)
        return true;
    if (policy->cache == POLICY_CACHE_NEVER)
        return false;
    if (policy->strip_cookies)
        http_head_remove(transaction->request.head, HTTP_COOKIE);
    if (policy->ignore_client_no_cache && !transaction->exchange->of_service)
        ignore_no_cache(&transaction->caching.control);
    return true;
}

bool caching_begin_post(struct transaction *transaction) {
    if (access_is_tunnel(transaction))
        return false;
    return transaction->settings->policy_count == 0 || begin_by_policy(transaction);
}

bool caching_begin(struct transaction *transaction) {
    cache_control_parse(&transaction->caching.control, transaction->request.head);
    transaction->caching.allowed = caching_begin_post(transaction);
    return transaction->caching.allowed;
}

void caching_take_name(struct transaction *transaction) {
    transaction->caching.name = cache_name_of(cache_url_by_policy(
        transaction->request.url_text, transaction->caching.policy, &transaction->arena));
}

bool caching_sends_name(const struct transaction *transaction) {
    return transaction->caching.policy == NULL ||
           transaction->caching.policy->query_sent == POLICY_QUERY_STORED;
}

void caching_ask_by_name(struct transaction *transaction) {
    struct slice whole = transaction->request.url_text, name = transaction->caching.name.url;
    if (!caching_sends_name(transaction) || slice_equal(name, whole))
        return;
    request_shorten_url(transaction, name);
}

void caching_review(struct transaction *transaction, const struct http_head *response) {
    if (transaction->settings->policies_by_type)
        transaction->caching.policy = resolve_for_response(transaction, response);
}

const struct cache_policy *caching_policy_for(struct transaction *transaction,
                                              const struct http_head *response) {
    if (!transaction->settings->policies_by_type)
        return transaction->caching.policy;
    return resolve_for_response(transaction, response);
}

/* Do the cookies of a stored response go to nobody? */
static bool strips_cookies(const struct transaction *transaction) {
    const struct cache_policy *policy = transaction->caching.policy;
    return policy != NULL &&
           (policy->strip_cookies || policy->set_cookie == POLICY_SET_COOKIE_STRIP);
}

bool caching_stores_cookies(const struct cache_policy *policy) {
    return policy != NULL && policy->set_cookie == POLICY_SET_COOKIE_STORE &&
           !policy->strip_cookies;
}

struct http_head *caching_head_to_store(struct transaction *transaction,
                                        struct http_head *response) {
    if (!http_head_sets_cookies(response) || caching_stores_cookies(transaction->caching.policy))
        return response;
    struct http_head *head = response;
    if (!strips_cookies(transaction)) {
        head = arena_alloc(&transaction->arena, sizeof *head);
        http_head_assign(head, response);
    }
    http_head_remove_set_cookies(head);
    return head;
}

bool caching_gives_cookies(const struct transaction *transaction) {
    const struct http_head *response = transaction->response.head;
    return response != NULL && http_head_sets_cookies(response) &&
           !caching_stores_cookies(transaction->caching.policy) && !strips_cookies(transaction);
}

unsigned caching_max_variants(const struct transaction *transaction) {
    const struct cache_policy *policy = transaction->caching.policy;
    return policy != NULL && policy->max_variants > 0 ? policy->max_variants
                                                      : transaction->settings->cache.max_variants;
}

struct freshness_rules caching_freshness_rules(struct transaction *transaction,
                                               const struct http_head *response) {
    const struct settings *settings = transaction->settings;
    return (struct freshness_rules){
        .heuristic_fraction = settings->cache.heuristic_fraction,
        .heuristic_max = (int64_t)(settings->cache.heuristic_max / 1000),
        .stale_while_revalidate = (int64_t)(settings->cache.stale_while_revalidate / 1000),
        .negative_ttl = settings->cache.negative_ttl,
        /* RFC 9213 §3: these fields are for caches that work for the origin, such as reverse
         * proxies. */
        .targeted =
            transaction->exchange->listen->mode == LISTEN_REVERSE ? settings->cache.targeted : NULL,
        .policy = transaction->caching.policy,
        .discloses_identity = disclosed_identity_is_personal(transaction, response),
        .unselected = disclosed_identity_hides_selector(transaction, response),
    };
}

enum object_scope caching_scope(const struct transaction *transaction) {
    if (internal_is_asked(transaction))
        return OBJECT_FOR_ALL;
    const struct listen_settings *listen = transaction->exchange->listen;
    if (listen->mode == LISTEN_REVERSE)
        return OBJECT_REVERSE;
    return listen->local_destinations == LOCAL_ALLOW ? OBJECT_FORWARD_LOCAL : OBJECT_FORWARD;
}
