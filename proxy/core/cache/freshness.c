#include "cache/freshness.h"

#include "cache/range.h"
#include "cache/vary.h"
#include "http/date.h"
#include "settings/negative.h"
#include "settings/policy.h"

/* Whether an answer with this status depends on parts of the request that are not in the key. If it
 * were stored, one client's strange request would decide what everybody gets. The section "Errors
 * that are never stored" in docs/CACHE.md has the reason for each status. */
static bool tells_of_request(unsigned status) {
    switch (status) {
    case 400:
    case 401:
    case 405:
    case 406:
    case 407:
    case 408:
    case 411:
    case 412:
    case 413:
    case 414:
    case 415:
    case 416:
    case 417:
    case 421:
    case 422:
    case 425:
    case 426:
    case 428:
    case 429:
    case 431:
    case 511: return true;
    default: return false;
    }
}

/* Has the request a field that makes frameworks treat a GET as another method? */
static bool overrides_method(const struct http_head *request) {
    return http_head_has(request, HTTP_X_HTTP_METHOD_OVERRIDE) ||
           http_head_has(request, HTTP_X_HTTP_METHOD) ||
           http_head_has(request, HTTP_X_METHOD_OVERRIDE);
}

/* Statuses that may be stored without explicit freshness (RFC 9110 §15.1), except those that
 * tells_of_request names. */
static bool heuristically_cacheable(unsigned status) {
    switch (status) {
    case 200:
    case 203:
    case 204:
    case 206:
    case 300:
    case 301:
    case 308:
    case 404:
    case 410:
    case 501: return true;
    default: return false;
    }
}

/* Final statuses whose meaning for caches Retort knows: those of RFC 9110 §15 except 304, which
 * only updates a stored response. */
static bool understood(unsigned status) {
    switch (status) {
    case 200:
    case 201:
    case 202:
    case 203:
    case 204:
    case 205:
    case 206:
    case 300:
    case 301:
    case 302:
    case 303:
    case 305:
    case 307:
    case 308:
    case 426:
    case 451:
    case 501:
    case 502:
    case 503:
    case 504:
    case 505: return true;
    default: return status >= 400 && status <= 417;
    }
}

/* Responses that may be stored when they say so, whether their status is understood or not. A 206
 * may be stored only if its head says which part it is, and of how many bytes. */
static bool freshness_is_final(const struct http_head *response) {
    struct partial part;
    return response->status >= 200 && response->status != 304 &&
           (response->status != 206 || partial_of_head(&part, response));
}

static bool field_date(const struct http_head *head, enum http_name id, time_t *date) {
    struct slice value = http_head_value(head, id);
    return value.base != NULL && http_date_parse(value, date);
}

/* 0: the text is not a number. A number that is too large counts as the greatest (RFC
 * 9111 §1.2.2). */
static int64_t delta_seconds(struct slice text) {
    uint64_t seconds;
    for (size_t i = 0; i < text.length; i++)
        if (text.base[i] < '0' || text.base[i] > '9')
            return 0;
    return slice_to_uint64(text, &seconds) && seconds < INT32_MAX ? (int64_t)seconds : INT32_MAX;
}

/* RFC 9111 §5.1: "a cache encountering a message with a list-based Age field value SHOULD use the
 * first member of the field value, discarding subsequent ones. If the field value (after discarding
 * additional members, as per above) is invalid (e.g., it contains something other than a
 * non-negative integer), a cache SHOULD ignore the field." Lines are one list (RFC 9110 §5.3). */
static int64_t age_value(const struct http_head *response) {
    struct slice first;
    const struct http_field *age = http_head_find(response, HTTP_AGE);
    for (; age != NULL; age = http_head_find_next(response, HTTP_AGE, age)) {
        struct slice rest = age->value;
        if (slice_next_element(&rest, &first))
            return delta_seconds(first);
    }
    return 0;
}

static int64_t initial_age(const struct http_head *response, time_t request_time,
                           time_t response_time) {
    time_t date;
    int64_t apparent = 0;
    if (field_date(response, HTTP_DATE, &date) && response_time > date)
        apparent = response_time - date;
    int64_t corrected = age_value(response) + (response_time - request_time);
    return apparent > corrected ? apparent : corrected;
}

static int64_t heuristic_lifetime(const struct freshness_rules *rules,
                                  const struct http_head *response, time_t response_time) {
    time_t date = response_time, modified;
    if (!field_date(response, HTTP_LAST_MODIFIED, &modified))
        return 0;
    field_date(response, HTTP_DATE, &date);
    if (modified >= date)
        return 0;
    int64_t lifetime = (int64_t)((double)(date - modified) * rules->heuristic_fraction);
    return lifetime > rules->heuristic_max ? rules->heuristic_max : lifetime;
}

/* §4.2.1: the first of these statements that is there counts. */
static void find_lifetime(struct freshness *freshness, const struct freshness_rules *rules,
                          const struct cache_control *control, bool targeted,
                          const struct http_head *response) {
    time_t date = freshness->response_time, expires;
    if (control->s_maxage >= 0) {
        freshness->lifetime = control->s_maxage;
    } else if (control->max_age >= 0) {
        freshness->lifetime = control->max_age;
    } else if (!targeted && http_head_has(response, HTTP_EXPIRES)) {
        field_date(response, HTTP_DATE, &date);
        bool valid = field_date(response, HTTP_EXPIRES, &expires);
        freshness->lifetime = valid && expires > date ? expires - date : 0;
    } else {
        freshness->heuristic = true;
        freshness->lifetime = heuristically_cacheable(response->status) || control->public
                                  ? heuristic_lifetime(rules, response, freshness->response_time)
                                  : 0;
    }
}

static bool has_validator(const struct http_head *response) {
    return http_head_has(response, HTTP_ETAG) || http_head_has(response, HTTP_LAST_MODIFIED);
}

/* The lifetimes of policies count from the time when the response came, whatever its age
 * was then. */
static void live(struct freshness *freshness, uint64_t milliseconds) {
    freshness->lifetime = freshness->initial_age + (int64_t)((milliseconds + 999) / 1000);
}

static bool lives_shorter(const struct freshness *freshness, uint64_t milliseconds) {
    return (freshness->lifetime - freshness->initial_age) * 1000 < (int64_t)milliseconds;
}

/* Is the response an error that lives as long as the settings say? */
static bool has_negative_ttl(const struct freshness_rules *rules, const struct freshness *freshness,
                             unsigned status, uint64_t *milliseconds) {
    const struct cache_policy *policy = rules->policy;
    char *const *negative =
        policy != NULL && policy->negative_ttl != NULL ? policy->negative_ttl : rules->negative_ttl;
    return status >= 400 && freshness->heuristic &&
           negative_ttl_find(negative, status, milliseconds);
}

/* The lifetimes for pages do not apply to errors: an error that lives as long as a page would hide
 * that the origin works again. */
static void rule_lifetime(struct freshness *freshness, const struct cache_policy *policy,
                          unsigned status) {
    if (status < 400) {
        if (policy->ttl != POLICY_UNSTATED)
            live(freshness, policy->ttl);
        else if (freshness->heuristic && policy->ttl_default != POLICY_UNSTATED)
            live(freshness, policy->ttl_default);
        if (policy->ttl_min != POLICY_UNSTATED && lives_shorter(freshness, policy->ttl_min))
            live(freshness, policy->ttl_min);
    }
    if (policy->ttl_max != POLICY_UNSTATED && !lives_shorter(freshness, policy->ttl_max))
        live(freshness, policy->ttl_max);
}

static void rule_staleness(struct freshness *freshness, const struct cache_policy *policy) {
    if (policy->stale_if_error != POLICY_UNSTATED)
        freshness->stale_if_error = (int64_t)(policy->stale_if_error / 1000);
    if (policy->stale_while_revalidate != POLICY_UNSTATED)
        freshness->stale_while_revalidate = (int64_t)(policy->stale_while_revalidate / 1000);
}

static void disregard(struct cache_control *control) {
    control->no_store = control->private = control->no_cache = control->must_revalidate =
        control->proxy_revalidate = false;
}

static bool overrides(const struct cache_policy *policy) {
    return policy != NULL && policy->cache == POLICY_CACHE_ALWAYS && policy->override;
}

/* Why the policy does not let the response be stored; NULL: it does. `own_lifetime` is the lifetime
 * that the response itself states. */
static const char *objection(const struct freshness *freshness, const struct freshness_rules *rules,
                             const struct http_head *response, int64_t own_lifetime) {
    const struct cache_policy *policy = rules->policy;
    uint64_t negative;
    if (policy->cache == POLICY_CACHE_NEVER)
        return "policy never";
    if (http_head_sets_cookies(response) && !policy->strip_cookies &&
        (policy->set_cookie == POLICY_SET_COOKIE_PASS ||
         (policy->set_cookie == POLICY_SET_COOKIE_EXPLICIT && freshness->lifetime > own_lifetime)))
        return "policy set_cookie";
    if (policy->cache == POLICY_CACHE_ALWAYS || policy->required_headers == 0 ||
        !freshness->heuristic || has_negative_ttl(rules, freshness, response->status, &negative))
        return NULL;
    return policy->required_headers == 1 && http_head_has(response, HTTP_LAST_MODIFIED)
               ? NULL
               : "policy required_headers";
}

/* Why a response that does not say how long it is fresh may not be stored, by its status and its
 * cookies; NULL: it may. */
static const char *heuristic_obstacle(const struct freshness *freshness,
                                      const struct freshness_rules *rules,
                                      const struct cache_control *control,
                                      const struct http_head *response) {
    const struct cache_policy *policy = rules->policy;
    uint64_t negative;
    bool always = policy != NULL && policy->cache == POLICY_CACHE_ALWAYS;
    if (!freshness->heuristic)
        return NULL;
    if (!heuristically_cacheable(response->status) && !control->public && !always &&
        !has_negative_ttl(rules, freshness, response->status, &negative))
        return "status without freshness";
    if (http_head_sets_cookies(response) &&
        (policy == NULL ||
         (policy->set_cookie == POLICY_SET_COOKIE_EXPLICIT && !policy->strip_cookies)))
        return "set-cookie without freshness";
    return NULL;
}

static bool is_for_all(const struct freshness_rules *rules, const struct cache_control *control) {
    return control->public || control->s_maxage >= 0 || overrides(rules->policy);
}

/* Why the response may not be stored because of the request; NULL: it may. */
static const char *obstacle_of_request(const struct freshness_rules *rules,
                                       const struct cache_control *control,
                                       const struct http_head *request) {
    struct cache_control asked;
    cache_control_parse(&asked, request);
    if (overrides(rules->policy))
        disregard(&asked);
    if (asked.no_store)
        return "request no-store";
    if (http_head_has(request, HTTP_AUTHORIZATION) && !control->public && control->s_maxage < 0 &&
        !control->must_revalidate)
        return "authorization";
    return rules->discloses_identity && !is_for_all(rules, control) ? "for one user" : NULL;
}

/* §3: why the response may not be stored, whoever asks; NULL: it may. */
static const char *obstacle(const struct freshness *freshness, const struct freshness_rules *rules,
                            const struct cache_control *control, const struct http_head *request,
                            const struct http_head *response) {
    if (request->method_id != HTTP_METHOD_GET)
        return "method";
    if (overrides_method(request))
        return "method overridden";
    if (!freshness_is_final(response) || tells_of_request(response->status))
        return "status";
    if (control->must_understand ? !understood(response->status) : control->no_store)
        return control->must_understand ? "status not understood" : "no-store";
    if (control->private)
        return "private";
    if (http_head_has_token(response, HTTP_VARY, SLICE("*")))
        return "vary *";
    if (rules->unselected)
        return "vary by a field that only the origin sees";
    if (!vary_usable(response))
        return "vary malformed";
    if ((freshness->lifetime <= freshness->initial_age || control->no_cache) &&
        !has_validator(response))
        return "stale at once";
    return heuristic_obstacle(freshness, rules, control, response);
}

bool freshness_is_for_all(const struct freshness_rules *rules, const struct http_head *response) {
    struct cache_control control;
    if (!cache_control_parse_targeted(&control, response, rules->targeted))
        cache_control_parse(&control, response);
    return is_for_all(rules, &control);
}

void freshness_of_response(struct freshness *freshness, const struct freshness_rules *rules,
                           const struct http_head *request, const struct http_head *response,
                           time_t request_time, time_t response_time) {
    struct cache_control control;
    bool targeted = cache_control_parse_targeted(&control, response, rules->targeted);
    if (!targeted)
        cache_control_parse(&control, response);
    if (overrides(rules->policy))
        disregard(&control);
    memset(freshness, 0, sizeof *freshness);
    freshness->response_time = response_time;
    freshness->initial_age = initial_age(response, request_time, response_time);
    freshness->always_revalidate = control.no_cache;
    freshness->never_stale =
        control.must_revalidate || control.proxy_revalidate || control.s_maxage >= 0;
    freshness->stale_if_error = control.stale_if_error;
    freshness->stale_while_revalidate = control.stale_while_revalidate >= 0
                                            ? control.stale_while_revalidate
                                            : rules->stale_while_revalidate;
    find_lifetime(freshness, rules, &control, targeted, response);
    int64_t own_lifetime = freshness->lifetime;
    uint64_t negative;
    if (has_negative_ttl(rules, freshness, response->status, &negative))
        live(freshness, negative);
    if (rules->policy != NULL) {
        rule_lifetime(freshness, rules->policy, response->status);
        rule_staleness(freshness, rules->policy);
    }
    freshness->reason = obstacle(freshness, rules, &control, request, response);
    if (freshness->reason == NULL && rules->policy != NULL)
        freshness->reason = objection(freshness, rules, response, own_lifetime);
    if (freshness->reason == NULL) {
        freshness->reason = obstacle_of_request(rules, &control, request);
        freshness->for_one = freshness->reason != NULL;
    }
    freshness->storable = freshness->reason == NULL;
}

void freshness_cut(struct freshness *freshness, uint64_t milliseconds) {
    if (!lives_shorter(freshness, milliseconds))
        live(freshness, milliseconds);
    freshness->never_stale = true;
    freshness->stale_while_revalidate = 0;
    freshness->stale_if_error = 0;
}

int64_t freshness_age(const struct freshness *freshness, time_t now) {
    int64_t resident = now > freshness->response_time ? now - freshness->response_time : 0;
    return freshness->initial_age + resident;
}

/* Who makes a response stale may read the clock a second later than who asks for it. */
static int64_t left_at(const struct freshness *freshness, int64_t age) {
    int64_t left = freshness->lifetime - age;
    return freshness->expired && left > 0 ? 0 : left;
}

int64_t freshness_left(const struct freshness *freshness, time_t now) {
    return left_at(freshness, freshness_age(freshness, now));
}

/* Seconds: workers read the clock at different moments. If a response came further in the future,
 * the clock has been set back since, and the age of the response is unknown. */
enum { CLOCKS_APART = 5 };

enum freshness_verdict freshness_judge(const struct freshness *freshness,
                                       const struct cache_control *request, time_t now) {
    int64_t age = freshness_age(freshness, now);
    int64_t left = left_at(freshness, age);
    if (freshness->always_revalidate || request->no_cache ||
        freshness->response_time > now + CLOCKS_APART)
        return FRESHNESS_REVALIDATE;
    if (request->max_age >= 0 && (age > request->max_age || request->max_age == 0) &&
        !(request->max_stale_any || request->max_stale >= 0))
        return FRESHNESS_REVALIDATE;
    if (request->min_fresh >= 0 && left < request->min_fresh)
        return FRESHNESS_REVALIDATE;
    if (left > 0)
        return FRESHNESS_FRESH;
    if (freshness->never_stale)
        return FRESHNESS_REVALIDATE;
    if (request->max_stale_any || (request->max_stale >= 0 && -left <= request->max_stale))
        return FRESHNESS_STALE_ALLOWED;
    if (request->max_age < 0 && request->min_fresh < 0 &&
        -left <= freshness->stale_while_revalidate && freshness->stale_while_revalidate > 0)
        return FRESHNESS_STALE_MEANWHILE;
    return FRESHNESS_REVALIDATE;
}

bool freshness_may_replace_error(const struct freshness *freshness,
                                 const struct cache_control *request, bool disconnected,
                                 int64_t most, time_t now) {
    int64_t stale = freshness_age(freshness, now) - freshness->lifetime;
    if (freshness->never_stale || freshness->always_revalidate || request->no_cache)
        return false;
    if (request->stale_if_error > most || freshness->stale_if_error >= 0)
        most = request->stale_if_error > freshness->stale_if_error ? request->stale_if_error
                                                                   : freshness->stale_if_error;
    else if (!disconnected)
        return false;
    return stale <= most;
}
