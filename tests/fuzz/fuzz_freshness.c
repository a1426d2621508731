/*
 * Freshness: what must hold of every response, whatever it says and whatever the clocks do. Lines:
 *
 *     when the request was sent, how much later the response came, how much later it is looked at
 *     heuristic_fraction in percent, heuristic_max, stale_while_revalidate     (a line each)
 *         where heuristic_max is odd, errors are kept as the settings say
 *     the policy, as "never override strip ttl=5000 negative=404,5xx,1m"; empty: none
 *     the status
 *     the request's fields, the response's fields, those of a request that asks later
 */
#include "base/assert.h"
#include "cache/freshness.h"
#include "cache/vary.h"
#include "lines.h"
#include "naive.h"
#include "settings/negative.h"
#include "settings/policy.h"

enum { TIMES_MAX = 365 * 24 * 3600 };
static const int64_t clock_max = (int64_t)1 << 40;

struct scene {
    struct freshness_rules rules;
    struct cache_policy policy;
    struct http_head request, response, later;
    time_t request_time, response_time, now;
};

static bool take_time(struct slice word, const char *name, uint64_t *milliseconds) {
    struct slice key = slice_from(name);
    if (!slice_starts_with(word, key) || word.length < key.length + 2)
        return false;
    __int128 number = naive_number(
        slice_make(word.base + key.length + 1, word.length - key.length - 1), TIMES_MAX * 1000LL);
    if (number >= 0 && word.base[key.length] == '=')
        *milliseconds = (uint64_t)number;
    return true;
}

/* A rule has blanks between its words, and so commas here. */
static bool take_negative(struct slice word, struct cache_policy *policy) {
    static char rule[80], *rules[] = {rule, NULL};
    struct slice key = SLICE("negative=");
    char error[200];
    if (!slice_starts_with(word, key) || word.length - key.length >= sizeof rule)
        return false;
    for (size_t i = key.length; i < word.length; i++)
        rule[i - key.length] = word.base[i] == ',' ? ' ' : word.base[i];
    rule[word.length - key.length] = '\0';
    if (negative_ttl_check(rule, error, sizeof error))
        policy->negative_ttl = rules;
    return true;
}

static void take_word(struct cache_policy *policy, struct slice word) {
    if (take_negative(word, policy) || take_time(word, "ttl_default", &policy->ttl_default) ||
        take_time(word, "ttl_min", &policy->ttl_min) ||
        take_time(word, "ttl_max", &policy->ttl_max) || take_time(word, "ttl", &policy->ttl) ||
        take_time(word, "stale_while_revalidate", &policy->stale_while_revalidate) ||
        take_time(word, "stale_if_error", &policy->stale_if_error))
        return;
    policy->override |= slice_equal(word, SLICE("override"));
    policy->strip_cookies |= slice_equal(word, SLICE("strip"));
    if (slice_equal(word, SLICE("never")))
        policy->cache = POLICY_CACHE_NEVER;
    else if (slice_equal(word, SLICE("always")))
        policy->cache = POLICY_CACHE_ALWAYS;
    else if (slice_equal(word, SLICE("store")))
        policy->set_cookie = POLICY_SET_COOKIE_STORE;
    else if (slice_equal(word, SLICE("pass")))
        policy->set_cookie = POLICY_SET_COOKIE_PASS;
    else if (slice_equal(word, SLICE("required1")))
        policy->required_headers = 1;
    else if (slice_equal(word, SLICE("required2")))
        policy->required_headers = 2;
}

static void take_policy(struct cache_policy *policy, struct slice line) {
    policy_init(policy);
    while (line.length > 0) {
        const char *space = memchr(line.base, ' ', line.length);
        size_t length = space == NULL ? line.length : (size_t)(space - line.base);
        take_word(policy, slice_make(line.base, length));
        length += space != NULL;
        line = slice_make(line.base + length, line.length - length);
    }
}

static char *const negative[] = {(char *)"404 410 1m", (char *)"5xx 5s", NULL};

static void take_scene(struct scene *scene, struct lines *lines) {
    scene->request_time = lines_signed(lines, clock_max);
    scene->response_time = scene->request_time + lines_signed(lines, clock_max);
    scene->now = scene->response_time + lines_signed(lines, clock_max);
    scene->rules.heuristic_fraction = (double)(lines_number(lines) % 101) / 100;
    scene->rules.heuristic_max = (int64_t)(lines_number(lines) % TIMES_MAX);
    scene->rules.stale_while_revalidate = (int64_t)(lines_number(lines) % TIMES_MAX);
    if (scene->rules.heuristic_max % 2 != 0)
        scene->rules.negative_ttl = negative;
    struct slice policy = lines_next(lines);
    scene->rules.policy = policy.length == 0 ? NULL : &scene->policy;
    take_policy(&scene->policy, policy);
    uint64_t status = lines_number(lines);
    lines_head(lines, &scene->request);
    lines_head(lines, &scene->response);
    lines_head(lines, &scene->later);
    scene->request.method_id = HTTP_METHOD_GET;
    scene->response.status = status < 100 || status > 999 ? 200 : (unsigned)status;
}

static bool disregards(const struct cache_policy *policy) {
    return policy != NULL && policy->cache == POLICY_CACHE_ALWAYS && policy->override;
}

/* RFC 9111 §3, and §3.5, one "must not" after the other. */
static void check_storable(const struct scene *scene, const struct freshness *freshness,
                           const struct cache_control *control) {
    const struct cache_policy *policy = scene->rules.policy;
    struct cache_control asked;
    unsigned status = scene->response.status;
    cache_control_parse(&asked, &scene->request);
    ASSERT(freshness->storable == (freshness->reason == NULL));
    if (!freshness->storable)
        return;
    ASSERT(status >= 200 && status != 206 && status != 304);
    ASSERT(vary_usable(&scene->response));
    ASSERT(policy == NULL || policy->cache != POLICY_CACHE_NEVER);
    if (!disregards(policy)) {
        ASSERT(!control->no_store || control->must_understand);
        ASSERT(!control->private && !asked.no_store);
        ASSERT(!http_head_has(&scene->request, HTTP_AUTHORIZATION) || control->public ||
               control->must_revalidate || control->s_maxage >= 0);
    }
    ASSERT(freshness->lifetime > freshness->initial_age ||
           http_head_has(&scene->response, HTTP_ETAG) ||
           http_head_has(&scene->response, HTTP_LAST_MODIFIED));
}

static void check_lifetime(const struct scene *scene, const struct freshness *freshness,
                           const struct cache_control *control) {
    const struct cache_policy *policy = scene->rules.policy;
    int64_t remains = freshness->lifetime - freshness->initial_age;
    ASSERT(freshness->initial_age >= 0 && freshness->lifetime >= 0);
    ASSERT(freshness->stale_if_error >= -1 && freshness->stale_while_revalidate >= 0);
    ASSERT(freshness->response_time == scene->response_time);
    if (policy != NULL) {
        ASSERT(policy->ttl_max == POLICY_UNSTATED ||
               remains <= (int64_t)(policy->ttl_max + 999) / 1000);
        ASSERT(policy->ttl_min == POLICY_UNSTATED || policy->ttl_max != POLICY_UNSTATED ||
               scene->response.status >= 400 || remains * 1000 >= (int64_t)policy->ttl_min);
        return;
    }
    if (control->s_maxage >= 0)
        ASSERT(freshness->lifetime == control->s_maxage);
    else if (control->max_age >= 0)
        ASSERT(freshness->lifetime == control->max_age);
    else if (freshness->heuristic && scene->response.status < 400)
        ASSERT(freshness->lifetime <= scene->rules.heuristic_max);
    ASSERT(!freshness->heuristic || (control->s_maxage < 0 && control->max_age < 0));
    ASSERT(freshness->always_revalidate == control->no_cache);
}

/* §4.2, §5.2.1: what each verdict says about the age. */
static void check_verdict(const struct freshness *freshness, const struct cache_control *request,
                          time_t now) {
    enum freshness_verdict verdict = freshness_judge(freshness, request, now);
    int64_t age = freshness_age(freshness, now), over = age - freshness->lifetime;
    bool any_stale = request->max_stale_any || request->max_stale >= 0;
    ASSERT(age >= freshness->initial_age);
    if (verdict == FRESHNESS_REVALIDATE) {
        ASSERT(over >= 0 || freshness->always_revalidate || request->no_cache ||
               request->max_age >= 0 || request->min_fresh >= 0 ||
               freshness->response_time > now); /* it came in the future */
        return;
    }
    ASSERT(!freshness->always_revalidate && !request->no_cache);
    ASSERT(request->max_age < 0 || age <= request->max_age || any_stale);
    ASSERT(request->min_fresh < 0 || -over >= request->min_fresh);
    ASSERT((verdict == FRESHNESS_FRESH) == (over < 0));
    ASSERT(verdict == FRESHNESS_FRESH || !freshness->never_stale);
    if (verdict == FRESHNESS_STALE_ALLOWED)
        ASSERT(request->max_stale_any || over <= request->max_stale);
    if (verdict == FRESHNESS_STALE_MEANWHILE)
        ASSERT(over <= freshness->stale_while_revalidate);
}

static void check_error(const struct freshness *freshness, const struct cache_control *request,
                        time_t now) {
    int64_t over = freshness_age(freshness, now) - freshness->lifetime;
    for (int disconnected = 0; disconnected < 2; disconnected++) {
        if (!freshness_may_replace_error(freshness, request, disconnected, TIMES_MAX, now))
            continue;
        ASSERT(!freshness->never_stale && !freshness->always_revalidate && !request->no_cache);
        ASSERT(over <= TIMES_MAX || over <= request->stale_if_error ||
               over <= freshness->stale_if_error);
        ASSERT(freshness_may_replace_error(freshness, request, disconnected, TIMES_MAX, now - 1));
    }
}

static void check(const struct scene *scene) {
    struct freshness freshness;
    struct cache_control control, later;
    freshness_of_response(&freshness, &scene->rules, &scene->request, &scene->response,
                          scene->request_time, scene->response_time);
    if (!cache_control_parse_targeted(&control, &scene->response, scene->rules.targeted))
        cache_control_parse(&control, &scene->response);
    cache_control_parse(&later, &scene->later);
    check_storable(scene, &freshness, &control);
    check_lifetime(scene, &freshness, &control);
    check_verdict(&freshness, &later, scene->now);
    check_verdict(&freshness, &later, scene->response_time);
    check_error(&freshness, &later, scene->now);
    /* What is fresh was fresh a moment before, unless the clock was set back behind the response. */
    if (scene->now > scene->response_time &&
        freshness_judge(&freshness, &later, scene->now) == FRESHNESS_FRESH)
        ASSERT(freshness_judge(&freshness, &later, scene->now - 1) == FRESHNESS_FRESH);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *targeted[] = {(char *)"CDN-Cache-Control", NULL};
    struct scene scene;
    struct lines lines = lines_of(data, size);
    memset(&scene.rules, 0, sizeof scene.rules);
    scene.rules.targeted = targeted;
    take_scene(&scene, &lines);
    check(&scene);
    lines_head_free(&scene.request);
    lines_head_free(&scene.response);
    lines_head_free(&scene.later);
    return 0;
}
