#include "transaction/transaction.h"

/* What the policies of the settings say about this transaction. */

/* `content_type` with base NULL: there is no response yet. */
static void resolve(struct transaction *transaction, struct slice content_type) {
    const struct settings *settings = transaction->settings;
    struct class_subject subject;
    struct cache_policy policy;
    transaction_subject(transaction, &subject);
    subject.content_type = content_type;
    transaction->policy = NULL;
    if (!policy_resolve(settings->policies, settings->policy_count, &subject, &policy))
        return;
    struct cache_policy *kept = arena_alloc(&transaction->arena, sizeof *kept);
    *kept = policy;
    transaction->policy = kept;
}

static void ignore_no_cache(struct cache_control *asked) {
    asked->no_cache = false;
    if (asked->max_age == 0)
        asked->max_age = -1;
}

bool transaction_begin_policy(struct transaction *transaction) {
    if (transaction->settings->policy_count == 0)
        return true;
    resolve(transaction, slice_make(NULL, 0));
    const struct cache_policy *policy = transaction->policy;
    if (policy == NULL)
        return true;
    if (policy->cache == POLICY_CACHE_NEVER)
        return false;
    if (policy->strip_cookies)
        http_head_remove(transaction->request, HTTP_COOKIE);
    if (policy->ignore_client_no_cache)
        ignore_no_cache(&transaction->asked);
    return true;
}

void transaction_review_policy(struct transaction *transaction, const struct http_head *response) {
    struct slice content_type = http_head_value(response, HTTP_CONTENT_TYPE);
    if (transaction->settings->policies_by_type)
        resolve(transaction, content_type.base == NULL ? SLICE("") : content_type);
}

/* What others are to get has no cookie; who is not to share the response keeps it. */
void transaction_strip_cookies(const struct transaction *transaction, struct http_head *response) {
    const struct cache_policy *policy = transaction->policy;
    if (policy != NULL && (policy->strip_cookies || policy->set_cookie == POLICY_SET_COOKIE_STRIP))
        http_head_remove(response, HTTP_SET_COOKIE);
}

unsigned transaction_max_variants(const struct transaction *transaction) {
    const struct cache_policy *policy = transaction->policy;
    return policy != NULL && policy->max_variants > 0 ? policy->max_variants
                                                      : transaction->settings->cache.max_variants;
}
