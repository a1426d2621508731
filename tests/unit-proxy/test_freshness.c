/* Freshness of responses, each value in front of a forbidden page. */
#include "suites.h"

#include "cache/freshness.h"

#include <string.h>

/* Tue, 14 Nov 2023 22:13:20 GMT */
static const time_t now = 1700000000;

static struct freshness judge(const char *request_lines, const char *response_lines) {
    struct freshness_rules rules = {.heuristic_fraction = 0.1, .heuristic_max = 86400};
    struct http_head request, response;
    struct freshness freshness;
    head_from(&request, request_lines);
    head_from(&response, response_lines);
    request.method_id = HTTP_METHOD_GET;
    response.status = 200;
    freshness_of_response(&freshness, &rules, &request, &response, now - 1, now);
    ck_assert(freshness.lifetime >= 0 && freshness.initial_age >= 0);
    ck_assert(freshness.storable == (freshness.reason == NULL));
    return freshness;
}

#define DATE "Date: Tue, 14 Nov 2023 22:13:20 GMT\n"

START_TEST(lifetimes) {
    static const struct {
        const char *lines;
        int64_t lifetime;
    } responses[] = {
        {"Cache-Control: max-age=60\n", 60},
        {"Cache-Control: max-age=60, s-maxage=70\nExpires: 0\n", 70},
        {DATE "Expires: Tue, 14 Nov 2023 22:14:20 GMT\n", 60},
        {DATE "Expires: Tue, 14 Nov 2023 22:12:20 GMT\n", 0},
        {DATE "Expires: 0\n", 0},
        {DATE "Expires:\n", 0},
        {DATE "Expires: Fri, 31 Dec 9999 23:59:59 GMT\n", 253402300799 - 1700000000},
        {DATE "Last-Modified: Tue, 14 Nov 2023 22:03:20 GMT\n", 60},
        {DATE "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\n", 86400},
        {DATE "Last-Modified: Tue, 14 Nov 2023 22:13:21 GMT\n", 0},
    };
    for (size_t i = 0; i < COUNT_OF(responses); i++)
        ck_assert_int_eq(judge("", responses[i].lines).lifetime, responses[i].lifetime);
}
END_TEST

START_TEST(ages) {
    ck_assert_int_eq(judge("", DATE).initial_age, 1);
    ck_assert_int_eq(judge("", "Age: 50\n").initial_age, 51);
    ck_assert_int_eq(judge("", "Date: Tue, 14 Nov 2023 22:12:20 GMT\nAge: 5\n").initial_age, 60);
    ck_assert_int_eq(judge("", "Date: Fri, 31 Dec 9999 23:59:59 GMT\n").initial_age, 1);
    ck_assert_int_ge(judge("", "Age: 1\nAge: 1\n").initial_age, INT32_MAX);
    ck_assert_int_ge(judge("", "Age: -1\n").initial_age, INT32_MAX);
    ck_assert_int_ge(judge("", "Age:\n").initial_age, INT32_MAX);
}
END_TEST

/* The clock has been set back since it came: nobody knows how old it is. */
START_TEST(what_came_in_the_future_is_asked_for_again) {
    const struct freshness fresh = judge("", DATE "Cache-Control: max-age=600\n");
    struct http_head request;
    struct cache_control asked;
    head_from(&request, "");
    cache_control_parse(&asked, &request);
    ck_assert_int_eq(freshness_judge(&fresh, &asked, now), FRESHNESS_FRESH);
    ck_assert_int_eq(freshness_judge(&fresh, &asked, now - 2), FRESHNESS_FRESH);
    ck_assert_int_eq(freshness_judge(&fresh, &asked, now - 60), FRESHNESS_REVALIDATE);
}
END_TEST

START_TEST(what_is_not_stored) {
    static const struct {
        const char *request, *response, *reason;
    } cases[] = {
        {"", "Cache-Control: max-age=60\n", NULL},
        {"", "Cache-Control: max-age=60\nVary: Accept\n", NULL},
        {"", "Cache-Control: max-age=60\nVary: Accept, *\n", "vary *"},
        {"", "Cache-Control: max-age=60\nVary: Accept Cookie\n", "vary malformed"},
        {"", "Cache-Control: max-age=60\nVary: a:b\n", "vary malformed"},
        {"", "Cache-Control: private, max-age=60\n", "private"},
        {"", "Cache-Control: no-store\n", "no-store"},
        {"Cache-Control: no-store\n", "Cache-Control: max-age=60\n", "request no-store"},
        {"Authorization: x\n", "Cache-Control: max-age=60\n", "authorization"},
        {"Authorization: x\n", "Cache-Control: s-maxage=60\n", NULL},
        {"", "Cache-Control: max-age=0\n", "stale at once"},
        {"", "Cache-Control: max-age=0\nETag: \"a\"\n", NULL},
        {"", DATE "Last-Modified: Tue, 14 Nov 2023 20:03:20 GMT\nSet-Cookie: a\n",
         "set-cookie without freshness"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        ck_assert_pstr_eq(judge(cases[i].request, cases[i].response).reason, cases[i].reason);
}
END_TEST

Suite *freshness_suite(void) {
    const TTest *const tests[] = {lifetimes, ages, what_came_in_the_future_is_asked_for_again,
                                  what_is_not_stored};
    return suite_of("freshness", tests, COUNT_OF(tests));
}
