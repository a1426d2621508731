#include "suites.h"

#include "cache/freshness.h"
#include "cache/key.h"
#include "http/head_parser.h"

#include <string.h>

#define LISTEN "listen \":1\" { mode = reverse }\n"

static struct class_subject subject_of(const char *path) {
    return (struct class_subject){.method = SLICE("GET"),
                                  .host = SLICE("h"),
                                  .url = slice_from(path),
                                  .path = slice_from(path)};
}

static bool resolve(const struct settings *settings, const char *path,
                    struct cache_policy *policy) {
    struct class_subject subject = subject_of(path);
    struct arena arena;
    arena_init(&arena);
    const uint64_t *bits = rules_find(settings->rules, &subject, &arena);
    bits = rules_without_type(settings->rules, bits, &arena);
    bool any = policy_resolve(settings->policies, settings->policy_count, bits, policy);
    arena_release(&arena);
    return any;
}

START_TEST(every_option_is_read) {
    struct cache_policy p;
    struct settings *s = settings_from(
        LISTEN "policy all { cache = always override = true ttl = 10m ttl_default = 1m "
               "ttl_min = 1s ttl_max = 1h negative_ttl = 30s required_headers = 2 "
               "ignore_client_no_cache = true max_variants = 4 query_drop = { \"utm_*\", fbclid } "
               "query_keep = id query_sort = true query_ignore = true strip_cookies = true "
               "set_cookie = pass stale_if_error = 5m stale_while_revalidate = 7s }\ncache { "
               "max_variants = 9 }\n");
    ck_assert(resolve(s, "/", &p));
    ck_assert_int_eq(p.cache, POLICY_CACHE_ALWAYS);
    ck_assert_int_eq(p.set_cookie, POLICY_SET_COOKIE_PASS);
    ck_assert(p.override && p.ignore_client_no_cache && p.strip_cookies);
    ck_assert(p.query_sort && p.query_ignore);
    ck_assert_uint_eq(p.ttl, 600000);
    ck_assert_uint_eq(p.ttl_default, 60000);
    ck_assert_uint_eq(p.ttl_min, 1000);
    ck_assert_uint_eq(p.ttl_max, 3600000);
    ck_assert_str_eq(p.negative_ttl[0], "30s");
    ck_assert_uint_eq(p.stale_while_revalidate, 7000);
    ck_assert_uint_eq(p.stale_if_error, 300000);
    ck_assert_uint_eq(p.required_headers, 2);
    ck_assert_uint_eq(p.max_variants, 4);
    ck_assert_str_eq(p.query_drop[1], "fbclid");
    ck_assert_str_eq(p.query_keep[0], "id");
    ck_assert_uint_eq(s->cache.max_variants, 9);
    settings_release(&s);
}
END_TEST

START_TEST(without_policies_nothing_is_stated) {
    struct cache_policy p;
    struct settings *s = settings_from(LISTEN);
    ck_assert(!resolve(s, "/", &p));
    ck_assert_uint_eq(p.ttl, POLICY_UNSTATED);
    ck_assert_ptr_null(p.query_drop);
    ck_assert_uint_eq(s->cache.max_variants, 32);
    settings_release(&s);
}
END_TEST

static const char overlapping[] =
    LISTEN "url_class images { path_regex = '\\.png$' }\n"
           "url_class static { path_regex = '^/static/' }\n"
           "policy images { ttl = 1d  query_sort = false  query_drop = a }\n"
           "policy static { ttl = 1h  ttl_max = 2h  query_sort = true }\n"
           "policy all { ttl = 1m  cache = never  query_drop = { b, c } }\n";

START_TEST(the_first_that_states_an_option_counts) {
    struct cache_policy p;
    struct settings *s = settings_from(overlapping);
    ck_assert(resolve(s, "/static/a.png", &p));
    ck_assert_uint_eq(p.ttl, 86400000);
    ck_assert_uint_eq(p.ttl_max, 7200000);
    ck_assert(!p.query_sort); /* stated as false is stated */
    ck_assert_int_eq(p.cache, POLICY_CACHE_NEVER);
    ck_assert_str_eq(p.query_drop[0], "a");
    ck_assert(resolve(s, "/static/a", &p));
    ck_assert_uint_eq(p.ttl, 3600000);
    ck_assert(p.query_sort);
    ck_assert(resolve(s, "/", &p));
    ck_assert_uint_eq(p.ttl, 60000);
    ck_assert_uint_eq(p.ttl_max, POLICY_UNSTATED);
    settings_release(&s);
}
END_TEST

/* Keys. */

static char *utm[] = {(char[]){"utm_*"}, (char[]){"fbclid"}, NULL};
static char *id[] = {(char[]){"id"}, NULL};

static const struct {
    const char *from, *to; /* to: the URL whose plain key is meant */
    bool drop, keep, sorted, ignored;
} keys[] = {
    {.from = "http://h/a?b=2&a=1", .to = "http://h/a?b=2&a=1"},
    {.from = "http://h/a?utm_source=x", .to = "http://h/a", .drop = true},
    {.from = "http://h/a?", .to = "http://h/a", .drop = true},
    {.from = "http://h/a?b=2&utm_x=3&fbclid&a=1", .to = "http://h/a?b=2&a=1", .drop = true},
    {.from = "http://h/a?utm=1&fbclidx=2", .to = "http://h/a?utm=1&fbclidx=2", .drop = true},
    {.from = "http://h/a?UTM_x=1", .to = "http://h/a?UTM_x=1", .drop = true},
    {.from = "http://h/a?&&b=1&&", .to = "http://h/a?b=1", .drop = true},
    {.from = "http://h/a?x=1&id=2&y=3", .to = "http://h/a?id=2", .keep = true},
    {.from = "http://h/a?id&id=2", .to = "http://h/a?id&id=2", .keep = true},
    {.from = "http://h/a?x=1", .to = "http://h/a", .keep = true},
    {.from = "http://h/a?b=2&a=1", .to = "http://h/a?a=1&b=2", .sorted = true},
    {.from = "http://h/a?b=2&a=9&b=1&a=3", .to = "http://h/a?a=9&a=3&b=2&b=1", .sorted = true},
    {.from = "http://h/a?ab=1&a=2", .to = "http://h/a?a=2&ab=1", .sorted = true},
    {.from = "http://h/a?z&utm_b=1&a", .to = "http://h/a?a&z", .drop = true, .sorted = true},
    {.from = "http://h/a?b=2&a=1", .to = "http://h/a", .ignored = true},
    {.from = "http://h/a", .to = "http://h/a", .drop = true, .sorted = true, .ignored = true},
    {.from = "http://h/a?a=1?utm_x=1", .to = "http://h/a?a=1?utm_x=1", .drop = true},
};

static struct arena the_arena;

START_TEST(urls_are_reduced) {
    arena_init(&the_arena);
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct cache_policy policy;
        policy_init(&policy);
        policy.query_drop = keys[i].drop ? utm : NULL;
        policy.query_keep = keys[i].keep ? id : NULL;
        policy.query_sort = keys[i].sorted;
        policy.query_ignore = keys[i].ignored;
        struct slice url = cache_url_by_policy(slice_from(keys[i].from), &policy, &the_arena);
        ck_assert_msg(slice_equal(url, slice_from(keys[i].to)), "%s becomes %.*s", keys[i].from,
                      SLICE_PRINT(url));
    }
    struct slice url = SLICE("http://h/a?b&a");
    ck_assert(slice_equal(cache_url_by_policy(url, NULL, &the_arena), url));
    arena_release(&the_arena);
}
END_TEST

START_TEST(long_queries_are_left_alone) {
    char url[4096] = "http://h/a?";
    struct cache_policy policy;
    policy_init(&policy);
    policy.query_sort = true;
    for (int i = 0; i < 128; i++)
        snprintf(url + strlen(url), sizeof url - strlen(url), "p%03d&", 500 - i);
    arena_init(&the_arena);
    struct slice whole = slice_from(url);
    ck_assert(!slice_equal(cache_url_by_policy(whole, &policy, &the_arena), whole));
    strcat(url, "x");
    whole = slice_from(url);
    ck_assert(slice_equal(cache_url_by_policy(whole, &policy, &the_arena), whole));
    arena_release(&the_arena);
}
END_TEST

static void check_reduced(const struct settings *settings, const char *from, const char *to) {
    struct slice url = cache_url_by_settings(slice_from(from), settings, NULL, &the_arena);
    ck_assert_msg(slice_equal(url, slice_from(to)), "%s becomes %.*s", from, SLICE_PRINT(url));
}

START_TEST(urls_by_settings_are_those_of_gets) {
    struct settings *s =
        settings_from(LISTEN "url_class a { host = h  path_regex = '^/a'  method = GET }\n"
                             "policy a { query_drop = x }\n");
    arena_init(&the_arena);
    check_reduced(s, "http://h/a?x=1", "http://h/a");
    check_reduced(s, "http://h/b?x=1", "http://h/b?x=1");
    check_reduced(s, "no URL", "no URL");
    arena_release(&the_arena);
    settings_release(&s);
}
END_TEST

/* Freshness. */

static struct freshness judge(const struct cache_policy *policy, const char *response_text) {
    const struct freshness_rules rules = {
        .heuristic_fraction = 0.1, .heuristic_max = 86400, .policy = policy};
    static const char request_text[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    struct http_head request, response;
    struct freshness freshness;
    ck_assert_int_gt(http_head_parse_request(&request, request_text, strlen(request_text), 0), 0);
    ck_assert_int_gt(http_head_parse_response(&response, response_text, strlen(response_text), 0),
                     0);
    freshness_of_response(&freshness, &rules, &request, &response, 1000000000, 1000000000);
    return freshness;
}

#define OK   "HTTP/1.1 200 OK\r\n"
#define GONE "HTTP/1.1 404 Not Found\r\n"

START_TEST(lifetimes_follow_the_policy) {
    struct cache_policy p;
    policy_init(&p);
    p.ttl_default = 60000;
    ck_assert_int_eq(judge(&p, OK "\r\n").lifetime, 60);
    ck_assert(judge(&p, OK "\r\n").storable);
    ck_assert_int_eq(judge(&p, OK "Cache-Control: max-age=5\r\n\r\n").lifetime, 5);
    p.ttl_min = 10000;
    ck_assert_int_eq(judge(&p, OK "Cache-Control: max-age=5\r\n\r\n").lifetime, 10);
    p.ttl_max = 30000;
    ck_assert_int_eq(judge(&p, OK "Cache-Control: max-age=99\r\nAge: 7\r\n\r\n").lifetime, 37);
    p.ttl = 20500;
    ck_assert_int_eq(judge(&p, OK "Cache-Control: max-age=99\r\n\r\n").lifetime, 21);
    ck_assert(!judge(&p, OK "Cache-Control: no-store\r\n\r\n").storable);
    ck_assert(!judge(&p, GONE "\r\n").storable); /* errors do not live like pages */
    ck_assert_int_eq(judge(&p, GONE "Cache-Control: max-age=3\r\n\r\n").lifetime, 3);
    p.negative_ttl = (char *[]){"4s", NULL};
    ck_assert_int_eq(judge(&p, GONE "\r\n").lifetime, 4);
    ck_assert_int_eq(judge(&p, GONE "Cache-Control: max-age=3\r\n\r\n").lifetime, 3);
    ck_assert(judge(&p, "HTTP/1.1 503 Busy\r\n\r\n").storable);
    ck_assert(!judge(&p, "HTTP/1.1 403 No\r\n\r\n").storable);
    p.stale_if_error = 9000;
    ck_assert_int_eq(judge(&p, OK "\r\n").stale_if_error, 9);
}
END_TEST

START_TEST(required_headers_are_required) {
    static const char dated[] = OK "Date: Sun, 09 Sep 2001 01:46:40 GMT\r\n"
                                   "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT\r\n\r\n";
    static const char bare[] = OK "ETag: \"x\"\r\n\r\n";
    static const char aged[] = OK "Cache-Control: max-age=5\r\n\r\n";
    for (unsigned required = 0; required <= 2; required++) {
        struct cache_policy p;
        policy_init(&p);
        p.required_headers = required;
        p.ttl = 60000;
        ck_assert_int_eq(judge(&p, bare).storable, required == 0);
        ck_assert_int_eq(judge(&p, dated).storable, required <= 1);
        ck_assert(judge(&p, aged).storable);
        p.cache = POLICY_CACHE_ALWAYS;
        ck_assert(judge(&p, bare).storable);
    }
}
END_TEST

START_TEST(always_and_override) {
    struct cache_policy p;
    policy_init(&p);
    p.ttl = 60000;
    ck_assert(!judge(&p, "HTTP/1.1 302 Found\r\n\r\n").storable);
    p.cache = POLICY_CACHE_ALWAYS;
    ck_assert(judge(&p, "HTTP/1.1 302 Found\r\n\r\n").storable);
    ck_assert(!judge(&p, OK "Cache-Control: private\r\n\r\n").storable);
    ck_assert(judge(&p, OK "Cache-Control: no-cache\r\nETag: \"x\"\r\n\r\n").always_revalidate);
    p.override = true;
    ck_assert(judge(&p, OK "Cache-Control: private, no-store\r\n\r\n").storable);
    ck_assert(!judge(&p, OK "Cache-Control: no-cache\r\n\r\n").always_revalidate);
    ck_assert(!judge(&p, OK "Vary: *\r\n\r\n").storable);
    p.cache = POLICY_CACHE_NEVER;
    ck_assert(!judge(&p, OK "Cache-Control: max-age=60\r\n\r\n").storable);
}
END_TEST

START_TEST(cookies_are_stored_where_it_is_safe) {
    static const char own[] = OK "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n\r\n";
    static const char none[] = OK "Set-Cookie: a=b\r\n\r\n";
    struct cache_policy p;
    policy_init(&p);
    ck_assert(judge(NULL, own).storable && judge(&p, own).storable);
    p.ttl = 60000;
    ck_assert(judge(&p, own).storable);
    ck_assert(!judge(&p, none).storable);
    p.ttl = 61000; /* longer than the origin has thought of */
    ck_assert(!judge(&p, own).storable);
    p.set_cookie = POLICY_SET_COOKIE_STORE;
    ck_assert(judge(&p, own).storable && judge(&p, none).storable);
    p.set_cookie = POLICY_SET_COOKIE_PASS;
    ck_assert(!judge(&p, own).storable);
    p.set_cookie = POLICY_SET_COOKIE_STRIP;
    ck_assert(judge(&p, own).storable && judge(&p, none).storable);
}
END_TEST

Suite *policy_suite(void) {
    const TTest *const tests[] = {
        every_option_is_read,
        without_policies_nothing_is_stated,
        the_first_that_states_an_option_counts,
        urls_are_reduced,
        long_queries_are_left_alone,
        urls_by_settings_are_those_of_gets,
        lifetimes_follow_the_policy,
        required_headers_are_required,
        always_and_override,
        cookies_are_stored_where_it_is_safe,
    };
    return suite_of("policy", tests, COUNT_OF(tests));
}
