#include "icap/permission.h"

#include "cache/freshness.h"

int64_t icap_permission(const struct http_head *head, time_t now) {
    const struct freshness_rules rules = {.policy = NULL};
    struct freshness freshness;
    struct http_head question;
    if (!http_head_has(head, HTTP_CACHE_CONTROL) && !http_head_has(head, HTTP_EXPIRES))
        return 0;
    http_head_init(&question);
    question.method_id = HTTP_METHOD_GET;
    freshness_of_response(&freshness, &rules, &question, head, now, now);
    if (!freshness.storable || freshness.heuristic || freshness.always_revalidate ||
        freshness.lifetime <= freshness.initial_age)
        return 0;
    return freshness.lifetime - freshness.initial_age;
}
