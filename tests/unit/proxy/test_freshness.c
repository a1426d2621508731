/* Freshness of responses, each value in front of a forbidden page. */
#include "suites.h"

#include "cache/freshness.h"
#include "settings/policy.h"

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
}
END_TEST

/* RFC 9111 §5.1: "Although it is defined as a singleton header field, a cache encountering a
 * message with a list-based Age field value SHOULD use the first member of the field value,
 * discarding subsequent ones. If the field value (after discarding additional members, as per
 * above) is invalid (e.g., it contains something other than a non-negative integer), a cache SHOULD
 * ignore the field." §1.2.2: of a value that is too large "the cache MUST consider the value to be
 * 2147483648 (2^31) or the greatest positive integer it can conveniently represent." */
START_TEST(of_age_the_first_member_counts) {
    static const struct {
        const char *lines;
        int64_t age;
    } cases[] = {
        {"Age: 7, 0\n", 7},        {"Age: 0, 7\n", 0},    {"Age: 7\nAge: 0\n", 7},
        {"Age: 0\nAge: 7\n", 0},   {"Age: 7, 7\n", 7},    {"Age: 7\nAge: 7\n", 7},
        {"Age: , 7\n", 7},         {"Age:\nAge: 7\n", 7}, {"Age: abc\n", 0},
        {"Age: -7\n", 0},          {"Age: +7\n", 0},      {"Age: 7.0\n", 0},
        {"Age: 7;a=b\n", 0},       {"Age: \"7\"\n", 0},   {"Age: 7 8\n", 0},
        {"Age: 0x7\n", 0},         {"Age:\n", 0},         {"Age: abc, 7\n", 0},
        {"Age: abc\nAge: 7\n", 0}, {"Age: 007\n", 7},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        ck_assert_msg(judge("", cases[i].lines).initial_age == cases[i].age + 1, "%s",
                      cases[i].lines);
    static const char *const large[] = {"Age: 2147483647\n", "Age: 2147483648\n",
                                        "Age: 99999999999999999999999\n"};
    for (size_t i = 0; i < COUNT_OF(large); i++)
        ck_assert_int_eq(judge("", large[i]).initial_age, INT32_MAX + (int64_t)1);
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

static bool is_stored(unsigned status, const char *response_lines,
                      const struct freshness_rules *rules) {
    struct http_head request, response;
    struct freshness freshness;
    head_from(&request, "");
    head_from(&response, response_lines);
    request.method_id = HTTP_METHOD_GET;
    response.status = status;
    freshness_of_response(&freshness, rules, &request, &response, now - 1, now);
    return freshness.storable;
}

/* RFC 6585 §3 to §6: "Responses with the 428 status code MUST NOT be stored by a cache", and
 * likewise 429, 431 and 511. RFC 9110 §15.5.13: 412 says that "one or more conditions given in the
 * request header fields evaluated to false"; no key has such fields, and of the others likewise. */
START_TEST(what_tells_of_the_request_is_not_stored) {
    static const unsigned statuses[] = {400, 401, 405, 406, 407, 408, 411, 412, 413, 414, 415,
                                        416, 417, 421, 422, 425, 426, 428, 429, 431, 511};
    struct cache_policy always;
    policy_init(&always);
    always.cache = POLICY_CACHE_ALWAYS;
    always.override = true;
    always.ttl = always.ttl_min = always.ttl_default = 60000;
    always.negative_ttl = (char *[]){"4xx 5xx 1m", NULL};
    const struct freshness_rules plain = {.heuristic_fraction = 0.1, .heuristic_max = 86400},
                                 ruled = {.heuristic_fraction = 0.1,
                                          .heuristic_max = 86400,
                                          .policy = &always,
                                          .negative_ttl = (char *[]){"4xx 5xx 1m", NULL}};
    static const char *const lines[] = {"Cache-Control: public, max-age=60\nETag: \"a\"\n",
                                        "Cache-Control: s-maxage=60\n",
                                        DATE "Expires: Tue, 14 Nov 2023 22:14:20 GMT\n",
                                        DATE "Last-Modified: Tue, 14 Nov 2023 20:03:20 GMT\n", ""};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        for (size_t j = 0; j < COUNT_OF(statuses); j++)
            ck_assert_msg(!is_stored(statuses[j], lines[i], &plain) &&
                              !is_stored(statuses[j], lines[i], &ruled),
                          "%u is stored, with %s", statuses[j], lines[i]);
        ck_assert(is_stored(404, lines[i], &ruled) && is_stored(403, lines[i], &ruled));
    }
    for (size_t i = 0; i < 3; i++)
        ck_assert(is_stored(403, lines[i], &plain) && is_stored(500, lines[i], &plain));
}
END_TEST

START_TEST(a_method_in_disguise_is_not_stored) {
    static const char *const fields[] = {"X-HTTP-Method-Override: POST\n",
                                         "x-http-method: DELETE\n", "X-Method-Override: FROB\n"};
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        ck_assert_str_eq(judge(fields[i], "Cache-Control: max-age=60\n").reason,
                         "method overridden");
}
END_TEST

Suite *freshness_suite(void) {
    const TTest *const tests[] = {lifetimes,
                                  ages,
                                  of_age_the_first_member_counts,
                                  what_came_in_the_future_is_asked_for_again,
                                  what_is_not_stored,
                                  what_tells_of_the_request_is_not_stored,
                                  a_method_in_disguise_is_not_stored};
    return suite_of("freshness", tests, COUNT_OF(tests));
}
