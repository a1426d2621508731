/* Cache-Control and the fields that name a cache, each value in front of a forbidden page. */
#include "suites.h"

#include "cache/cache_control.h"

#include <string.h>

static struct cache_control parse(const char *lines, unsigned status) {
    struct http_head head;
    struct cache_control control;
    head_from(&head, lines);
    head.status = status;
    cache_control_parse(&control, &head);
    return control;
}

START_TEST(directives_are_read) {
    struct cache_control c = parse("Cache-Control: no-store, MAX-AGE=5 , s-maxage=\"6\"\n"
                                   "X: no-cache\nCache-Control: immutable\n",
                                   200);
    ck_assert(c.no_store && c.immutable && !c.no_cache && !c.private);
    ck_assert_int_eq(c.max_age, 5);
    ck_assert_int_eq(c.s_maxage, 6);
    ck_assert_int_eq(c.min_fresh, -1);
    c = parse("Cache-Control: max-stale, min-fresh=7\n", 0);
    ck_assert(c.max_stale_any);
    ck_assert_int_eq(c.min_fresh, 7);
}
END_TEST

START_TEST(numbers_that_are_none_are_zero) {
    static const struct {
        const char *line;
        int64_t seconds;
    } numbers[] = {
        {"Cache-Control: max-age\n", 0},
        {"Cache-Control: max-age=\n", 0},
        {"Cache-Control: max-age=\"\"\n", 0},
        {"Cache-Control: max-age=\"\n", 0},
        {"Cache-Control: max-age=-1\n", 0},
        {"Cache-Control: max-age=1.5\n", 0},
        {"Cache-Control: max-age=1 2\n", 0},
        {"Cache-Control: max-age=3, max-age=4\n", 3},
        {"Cache-Control: max-age = 3\n", 3},
        {"Cache-Control: max-age=2147483648\n", 2147483647},
        {"Cache-Control: max-age=99999999999999999999\n", 2147483647},
        {"Cache-Control: a=\"b, max-age=5\n", -1},
        {"Cache-Control: a=\"b, max-age=5\", max-age=6\n", 6},
        {"Cache-Control: \n", -1},
        {"Cache-Control: =5\n", -1},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        ck_assert_int_eq(parse(numbers[i].line, 200).max_age, numbers[i].seconds);
}
END_TEST

START_TEST(pragma_counts_in_requests_without_cache_control) {
    ck_assert(parse("Pragma: a, no-cache\n", 0).no_cache);
    ck_assert(!parse("Pragma: no-cache\n", 200).no_cache);
    ck_assert(!parse("Pragma: no-cache\nCache-Control: max-age=1\n", 0).no_cache);
}
END_TEST

static bool targeted(const char *lines, struct cache_control *control) {
    static char field[] = "CDN-Cache-Control";
    char *names[] = {field, NULL};
    struct http_head head;
    head_from(&head, lines);
    return cache_control_parse_targeted(control, &head, names);
}

START_TEST(all_lines_of_a_targeted_field_count) {
    struct cache_control c;
    ck_assert(targeted("CDN-Cache-Control: max-age=5\nX: y\ncdn-cache-control: private\n", &c));
    ck_assert(c.private);
    ck_assert_int_eq(c.max_age, 5);
    ck_assert(!targeted("CDN-Cache-Control: max-age=5\nCDN-Cache-Control: a b\n", &c));
    ck_assert(!targeted("Cache-Control: max-age=5\n", &c));
}
END_TEST

START_TEST(strings_of_a_targeted_field_hold_anything) {
    struct cache_control c;
    ck_assert(targeted("CDN-Cache-Control: a=\"b c; d\\\" e\", max-age=5;p=\"q r\"\n", &c));
    ck_assert_int_eq(c.max_age, 5);
    ck_assert(targeted("CDN-Cache-Control: max-age=6 ; p, no-store\n", &c) == false);
    ck_assert(!targeted("CDN-Cache-Control: max-age = 6\n", &c));
    ck_assert(!targeted("CDN-Cache-Control: a=\"b\n", &c));
    ck_assert(!targeted("CDN-Cache-Control: ;p\n", &c));
    ck_assert(!targeted("CDN-Cache-Control: \n", &c));
    ck_assert(!targeted("CDN-Cache-Control: max-age=5\nCDN-Cache-Control: \n", &c));
}
END_TEST

/* RFC 9213 §2.1: "If a targeted field in a given response is empty, or a parsing error is
 * encountered, that field MUST be ignored by the cache (i.e., it behaves as if the field were not
 * present, likely falling back to other cache-control mechanisms present)." */
START_TEST(a_targeted_field_that_does_not_parse_is_ignored) {
    static const char *const lines[] = {"max-age=10000, &&&&&",
                                        "max-age=10000,",
                                        "max-age=10000 no-store",
                                        "Max-Age=5",
                                        "max-age=5;",
                                        "max-age=5, =5",
                                        "max-age=5 , , no-store",
                                        "max-age=1234567890123456",
                                        "max-age=5, a=\"b",
                                        "max-age=5, a=(1 2",
                                        "max-age=5, \"no-store\"",
                                        "max-age=--5",
                                        "max-age=5, a=?2",
                                        "max-age=5, a=:?:",
                                        "max-age=5, a=1.2345",
                                        "a=1., max-age=5"};
    struct cache_control c;
    char line[100];
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        snprintf(line, sizeof line, "CDN-Cache-Control: %s\n", lines[i]);
        ck_assert_msg(!targeted(line, &c), "%s", lines[i]);
    }
}
END_TEST

/* §2.1: "Implementations SHOULD NOT consume values that violate these inferred constraints. For
 * example, a consuming implementation that coerces a max-age with a decimal value into an integer
 * would behave differently than other implementations, potentially causing interoperability
 * issues." */
START_TEST(a_targeted_field_of_other_types_is_ignored) {
    static const char *const lines[] = {"max-age=\"10000\"",
                                        "max-age=5.0",
                                        "max-age=-1",
                                        "max-age",
                                        "max-age=?1",
                                        "max-age=x",
                                        "max-age=(5)",
                                        "max-age=:NQ==:",
                                        "s-maxage=\"5\", max-age=5",
                                        "no-store=1, max-age=5",
                                        "no-store=?0",
                                        "no-store=\"\"",
                                        "private=?0",
                                        "no-cache=x",
                                        "no-cache=5",
                                        "stale-if-error=\"5\""};
    struct cache_control c;
    char line[100];
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        snprintf(line, sizeof line, "CDN-Cache-Control: %s\n", lines[i]);
        ck_assert_msg(!targeted(line, &c), "%s", lines[i]);
    }
    ck_assert(targeted("CDN-Cache-Control: no-cache=\"a, b\", private, max-age=7;x=\"y\"\n", &c));
    ck_assert(c.no_cache && c.private);
    ck_assert_int_eq(c.max_age, 7);
    ck_assert(
        targeted("CDN-Cache-Control: max-age=99999999999, min-fresh=x, foo=(a \"b\");c\n", &c));
    ck_assert_int_eq(c.max_age, 2147483647);
}
END_TEST

static bool surrogate(const char *lines, struct cache_control *control) {
    static char field[] = "surrogate-control";
    char *names[] = {field, NULL};
    struct http_head head;
    head_from(&head, lines);
    return cache_control_parse_targeted(control, &head, names);
}

/* Edge Architecture Specification, 2.2: older than Structured Fields, and its names are of any
 * case; but as RFC 9213 §2.1 says of those, a field of which a part does not parse or has a wrong
 * type is ignored as a whole. */
START_TEST(surrogate_control_is_a_list) {
    struct cache_control c;
    ck_assert(surrogate("Surrogate-Control: MaX-aGe=3600+600;me, content=\"ESI/1.0\"\n", &c));
    ck_assert_int_eq(c.max_age, 3600);
    ck_assert_int_eq(c.stale_while_revalidate, 600);
    ck_assert(surrogate("Surrogate-Control: no-store ; me\n", &c) && c.no_store);
    ck_assert(surrogate("Surrogate-Control: x-y=\"a;b\", max-age=7\n", &c) && c.max_age == 7);
    static const char *const bad[] = {
        "max-age=x",  "max-age=\"60\"",  "max-age=60, &&&&&", "max-age = 60",      "max-age=60+",
        "max-age=+6", "max-age=60+30+1", "max-age",           "max-age=60, a=\"b", "no-store=1",
        "max-age=-1", "max-age=1.5",     "no-store, a b",     "no-store, ;me",     "max-age=60 30",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[80];
        snprintf(line, sizeof line, "Surrogate-Control: %s\n", bad[i]);
        ck_assert_msg(!surrogate(line, &c), "%s", bad[i]);
    }
    ck_assert(!surrogate("Surrogate-Control: content=\"ESI/1.0\"\n", &c));
    ck_assert(!surrogate("Surrogate-Control: \n", &c));
}
END_TEST

/* What is not well formed may hide the directive that matters. */
START_TEST(malformed_directives_are_distrusted) {
    static const char *const values[] = {"a=\"b, no-store",
                                         "max-age=60, a=\"b",
                                         "\"no-store, max-age=60",
                                         "max-age=60 no-store",
                                         "private max-age=60",
                                         "max-age=60; no-store",
                                         "a=\"b\"c, max-age=60",
                                         "a=\"b\\\", no-store",
                                         "max-age=\"60",
                                         "max-age=",
                                         "=60",
                                         "a=b=c",
                                         "\"no-store\"",
                                         "max-age=60, \"",
                                         "no-store\xa0"};
    static const char *const good[] = {
        "a=\"b, no-store\"", "max-age=60,, a=\"\\\"\"", "a, b=c", "max-age = 60", "a=\"\"", "", ",",
        "no-cache=\"a, b\""};
    char line[100];
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        snprintf(line, sizeof line, "Cache-Control: %s\n", values[i]);
        ck_assert_msg(parse(line, 200).no_store && !parse(line, 200).no_cache, "%s", values[i]);
        ck_assert_msg(parse(line, 0).no_store && parse(line, 0).no_cache, "%s", values[i]);
    }
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        snprintf(line, sizeof line, "Cache-Control: %s\n", good[i]);
        ck_assert_msg(!parse(line, 200).no_store && !parse(line, 0).no_store, "%s", good[i]);
    }
    ck_assert(parse("Pragma: a=\"b, no-cache\n", 0).no_cache);
    ck_assert(!parse("Pragma: a=\"b, no-cache\"\n", 0).no_cache);
}
END_TEST

START_TEST(the_last_member_of_a_targeted_field_counts) {
    struct cache_control c;
    ck_assert(targeted("CDN-Cache-Control: max-age=5, max-age=7\n", &c));
    ck_assert_int_eq(c.max_age, 7);
    ck_assert(targeted("CDN-Cache-Control: max-age=9;p\nCDN-Cache-Control: max-age=8\n", &c));
    ck_assert_int_eq(c.max_age, 8);
    ck_assert(targeted("CDN-Cache-Control: private=\"a\", private\n", &c));
    ck_assert(c.private);
    c = parse("Cache-Control: max-age=5, max-age=7\n", 200);
    ck_assert_int_eq(c.max_age, 5);
}
END_TEST

Suite *control_suite(void) {
    const TTest *const tests[] = {directives_are_read,
                                  numbers_that_are_none_are_zero,
                                  pragma_counts_in_requests_without_cache_control,
                                  all_lines_of_a_targeted_field_count,
                                  malformed_directives_are_distrusted,
                                  a_targeted_field_that_does_not_parse_is_ignored,
                                  a_targeted_field_of_other_types_is_ignored,
                                  surrogate_control_is_a_list,
                                  strings_of_a_targeted_field_hold_anything,
                                  the_last_member_of_a_targeted_field_counts};
    return suite_of("control", tests, COUNT_OF(tests));
}
