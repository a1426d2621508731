/*
 * Freshness: may a response be stored, for how long may it be used, and does it satisfy this
 * request (RFC 9111 §3, §4.2, §5.2)? Pure functions over heads and times.
 *
 *     struct freshness freshness;
 *     freshness_of_response(&freshness, &rules, &request, &response, request_time, response_time);
 *     if (freshness.storable) ...
 *     switch (freshness_judge(&freshness, &request_control, now)) ...
 *
 * Units: seconds, wall clock.
 */
#ifndef RETORT_CACHE_FRESHNESS_H
#define RETORT_CACHE_FRESHNESS_H

#include "cache/cache_control.h"

#include <time.h>

struct cache_policy;

struct freshness_rules {
    double heuristic_fraction;
    int64_t heuristic_max;
    int64_t stale_while_revalidate; /* where the response does not say */
    char *const *negative_ttl;      /* rules of settings/negative.h; NULL: none */
    char *const *targeted;          /* names of fields that replace Cache-Control; ends with NULL */
    const struct cache_policy *policy; /* NULL: none */
    bool
        discloses_identity; /* the origin was told who asks, in a field that does not select the response */
    bool unselected; /* Vary names a field whose value the cache does not see */
};

struct freshness {
    bool storable;
    bool always_revalidate; /* no-cache */
    bool never_stale;       /* must-revalidate, proxy-revalidate, s-maxage: max-stale is ignored */
    bool heuristic;         /* the response does not say how long it is fresh */
    bool expired;           /* it was made stale: no clock makes it fresh again */
    int64_t lifetime;
    int64_t stale_if_error;         /* seconds; -1: not stated */
    int64_t stale_while_revalidate; /* seconds past the lifetime (RFC 5861 §3) */
    int64_t initial_age;            /* corrected_initial_age (§4.2.3) */
    time_t response_time;
    const char *reason; /* why it is not storable */
    bool for_one;       /* because of who asks, or asks so: it says nothing about what others get */
};

enum freshness_verdict {
    FRESHNESS_FRESH,
    FRESHNESS_STALE_ALLOWED,
    FRESHNESS_STALE_MEANWHILE, /* may be used while it is revalidated in the background */
    FRESHNESS_REVALIDATE,
};

void freshness_of_response(struct freshness *freshness, const struct freshness_rules *rules,
                           const struct http_head *request, const struct http_head *response,
                           time_t request_time, time_t response_time);
/* Is the response for everybody, whatever the origin was told about who asks? It says public or
 * s-maxage, or the policy overrides what it says. */
bool freshness_is_for_all(const struct freshness_rules *rules, const struct http_head *response);
/* Limits the lifetime to `milliseconds` after the response came. After that the response must not
 * be used stale, not even in place of an error. */
void freshness_cut(struct freshness *freshness, uint64_t milliseconds);
/* Seconds that it is still fresh; 0 or less: it is stale. */
int64_t freshness_left(const struct freshness *freshness, time_t now);
int64_t freshness_age(const struct freshness *freshness, time_t now);
/* May a stale response be used in place of an answer that did not come, for `most` seconds past its
 * freshness (RFC 9111 §4.2.4)? May it be used in place of an error that the origin sent, for as
 * long as stale-if-error says (RFC 5861 §4)? `disconnected`: no answer came. */
bool freshness_may_replace_error(const struct freshness *freshness,
                                 const struct cache_control *request, bool disconnected,
                                 int64_t most, time_t now);
enum freshness_verdict freshness_judge(const struct freshness *freshness,
                                       const struct cache_control *request, time_t now);

#endif
