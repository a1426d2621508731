/* What classes compare besides URLs: hours, fields, users, destinations, other classes. */
#include "suites.h"

#include "base/assert.h"
#include "match/class_conditions.h"
#include "match/network_set.h"

#include <string.h>
#include <time.h>

#define ONE(text) ((char *[]){(char *)(uintptr_t)(text), NULL})

static enum class_answer judge(const struct url_class_conditions *conditions,
                               const struct class_subject *subject) {
    char error[400] = "";
    struct url_class *url_class = url_class_new("test", conditions, error, sizeof error);
    ck_assert_msg(url_class != NULL, "%s", error);
    enum class_answer answer = url_class_judge(url_class, subject);
    url_class_free(&url_class);
    return answer;
}

static struct address address_of(const char *ip) {
    struct address address;
    ck_assert(address_parse_ip(&address, slice_from(ip), 80));
    return address;
}

/* Hours. */

static bool have_hours(const char *text, const char *day_and_time) {
    static const char days[] = "SunMonTueWedThuFriSat";
    struct class_hours hours;
    char error[300] = "", day[4];
    int hour, minute;
    ck_assert_int_eq(sscanf(day_and_time, "%3s %d:%d", day, &hour, &minute), 3);
    class_hours_clear(&hours);
    ck_assert_msg(class_hours_add(&hours, text, error, sizeof error), "%s %s", text, error);
    /* 2 July 2023 was a Sunday. */
    struct tm local = {.tm_year = 123,
                       .tm_mon = 6,
                       .tm_mday = 2 + (int)(strstr(days, day) - days) / 3,
                       .tm_hour = hour,
                       .tm_min = minute,
                       .tm_isdst = -1};
    return class_hours_have(&hours, mktime(&local));
}

START_TEST(hours_have_a_beginning_and_an_end) {
    ck_assert(have_hours("mon-fri 08:00-17:30", "Mon 08:00"));
    ck_assert(have_hours("mon-fri 08:00-17:30", "Fri 17:29"));
    ck_assert(!have_hours("mon-fri 08:00-17:30", "Fri 17:30"));
    ck_assert(!have_hours("mon-fri 08:00-17:30", "Mon 07:59"));
    ck_assert(!have_hours("mon-fri 08:00-17:30", "Sun 09:00"));
    ck_assert(have_hours("sat,sun", "Sat 00:00"));
    ck_assert(have_hours("SAT,sun", "Sun 23:59"));
    ck_assert(!have_hours("sat,sun", "Mon 00:00"));
    ck_assert(have_hours("sat-mon 12:00-13:00", "Sun 12:30"));
    ck_assert(!have_hours("sat-mon 12:00-13:00", "Tue 12:30"));
    ck_assert(have_hours("12:00-24:00", "Wed 23:59"));
}
END_TEST

START_TEST(hours_go_on_after_midnight) {
    ck_assert(have_hours("fri 22:00-06:00", "Fri 22:00"));
    ck_assert(have_hours("fri 22:00-06:00", "Sat 05:59"));
    ck_assert(!have_hours("fri 22:00-06:00", "Sat 06:00"));
    ck_assert(!have_hours("fri 22:00-06:00", "Fri 05:00"));
    ck_assert(have_hours("sat 22:00-06:00", "Sun 01:00"));
    ck_assert(have_hours("22:00-06:00", "Tue 03:00"));
    ck_assert(!have_hours("22:00-06:00", "Tue 12:00"));
}
END_TEST

START_TEST(bad_hours_are_refused) {
    static const char *const bad[] = {"",
                                      "mon-",
                                      "mon,",
                                      "xyz",
                                      "mon 8:00-9:00",
                                      "mon 08:00",
                                      "mon08:00-09:00",
                                      "08:00-08:00",
                                      "25:00-26:00",
                                      "08:60-09:00",
                                      "24:01-02:00",
                                      "mon-fri 08:00-17:30 x",
                                      "mon fri",
                                      "08:00-",
                                      "-",
                                      "08:00-09:00 mon"};
    struct class_hours hours, before;
    char error[300];
    class_hours_clear(&hours);
    before = hours;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert_msg(!class_hours_add(&hours, bad[i], error, sizeof error), "%s", bad[i]);
        ck_assert_mem_eq(&hours, &before, sizeof hours);
    }
    ck_assert(!class_hours_have(&hours, 0));
    ck_assert(!class_hours_have(&hours, -5));
}
END_TEST

/* Fields, certificates, ports. */

START_TEST(fields_are_searched) {
    struct class_subject subject = {0};
    struct http_head head;
    head_from(&head, "User-Agent: curl/8.1\nX-Thing: one\nX-Thing: two\n");
    struct url_class_conditions agent = {.request_headers = ONE("user-agent: ^curl/")};
    struct url_class_conditions thing = {.request_headers = ONE("x-thing:^two$")};
    struct url_class_conditions there = {.request_headers = ONE("X-Thing:")};
    struct url_class_conditions absent = {.request_headers = ONE("Accept:")};
    ck_assert_int_eq(judge(&agent, &subject), CLASS_NO);
    subject.head = &head;
    ck_assert_int_eq(judge(&agent, &subject), CLASS_YES);
    ck_assert_int_eq(judge(&thing, &subject), CLASS_YES);
    ck_assert_int_eq(judge(&there, &subject), CLASS_YES);
    ck_assert_int_eq(judge(&absent, &subject), CLASS_NO);
}
END_TEST

START_TEST(certificates_are_named_by_subject_or_common_name) {
    struct url_class_conditions name = {.certificates = ONE("alice")};
    struct url_class_conditions whole = {.certificates = ONE("CN=alice,O=Example")};
    static const struct {
        const char *subject;
        bool name, whole;
    } cases[] = {{"CN=alice,O=Example", true, true},
                 {"O=Example,CN=alice", true, false},
                 {"O=Example\\,CN=alice", false, false},
                 {"OU=x+CN=Alice", true, false},
                 {"CN=alice\\,bob", false, false},
                 {"CN=mallory,CN=alice", false, false},
                 {"", false, false},
                 {"CN=alice\\", false, false},
                 {"CN=", false, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct class_subject subject = {.certificate = slice_from(cases[i].subject)};
        ck_assert_int_eq(judge(&name, &subject) == CLASS_YES, cases[i].name);
        ck_assert_int_eq(judge(&whole, &subject) == CLASS_YES, cases[i].whole);
    }
}
END_TEST

START_TEST(ports_schemes_and_listeners_are_compared) {
    struct class_subject subject = {
        .port = 8443, .scheme = SLICE("https"), .listener = SLICE("guests")};
    struct url_class_conditions c = {
        .ports = ONE("8000-9000"), .schemes = ONE("https"), .listeners = ONE("Guests")};
    ck_assert_int_eq(judge(&c, &subject), CLASS_YES);
    subject.port = 9001;
    ck_assert_int_eq(judge(&c, &subject), CLASS_NO);
    subject.port = 8000;
    subject.scheme = slice_make("", 0);
    ck_assert_int_eq(judge(&c, &subject), CLASS_NO);
}
END_TEST

/* Users, destinations, and what is not known yet. */

START_TEST(users_are_known_or_pending) {
    static const struct slice groups[] = {SLICE("staff"), SLICE("admins")};
    const struct class_user alice = {SLICE("alice"), groups, 2};
    struct class_subject nobody = {0}, pending = {.user_pending = true}, user = {.user = &alice};
    struct url_class_conditions named = {.users = ONE("alice")}, other = {.users = ONE("Alice")};
    struct url_class_conditions any = {.users = ONE("*")}, group = {.groups = ONE("admins")};
    struct url_class_conditions no_group = {.users = ONE("alice"), .groups = ONE("guests")};
    struct url_class_conditions elsewhere = {.users = ONE("alice"), .hosts = ONE("a.example")};
    ck_assert_int_eq(judge(&named, &nobody), CLASS_NO);
    ck_assert_int_eq(judge(&named, &pending), CLASS_UNKNOWN);
    ck_assert_int_eq(judge(&elsewhere, &pending), CLASS_NO);
    ck_assert_int_eq(judge(&named, &user), CLASS_YES);
    ck_assert_int_eq(judge(&other, &user), CLASS_NO);
    ck_assert_int_eq(judge(&any, &user), CLASS_YES);
    ck_assert_int_eq(judge(&any, &nobody), CLASS_NO);
    ck_assert_int_eq(judge(&group, &user), CLASS_YES);
    ck_assert_int_eq(judge(&group, &pending), CLASS_UNKNOWN);
    ck_assert_int_eq(judge(&no_group, &user), CLASS_NO);
}
END_TEST

START_TEST(one_of_the_destinations_is_enough) {
    const struct address addresses[] = {address_of("198.51.100.1"), address_of("::ffff:10.0.0.1")};
    struct class_subject subject = {.destination_pending = true};
    struct url_class_conditions c = {.destinations = ONE("10.0.0.0/8")};
    struct url_class_conditions v6 = {.destinations = ONE("::/0")};
    ck_assert_int_eq(judge(&c, &subject), CLASS_UNKNOWN);
    subject.destination_pending = false;
    ck_assert_int_eq(judge(&c, &subject), CLASS_NO);
    subject.destinations = addresses;
    subject.destination_count = 1;
    ck_assert_int_eq(judge(&c, &subject), CLASS_NO);
    subject.destination_count = 2;
    ck_assert_int_eq(judge(&c, &subject), CLASS_YES);
    ck_assert_int_eq(judge(&v6, &subject), CLASS_NO);
}
END_TEST

/* Classes that name others, as the settings load them. */

static const char head_of_file[] = "listen \":1\" { mode = forward }\n";

static enum class_answer judge_named(const char *sections, const char *name,
                                     const struct class_subject *subject) {
    char *text;
    ck_assert_int_gt(asprintf(&text, "%s%s", head_of_file, sections), 0);
    struct settings *settings = settings_from(text);
    enum class_answer answer = CLASS_UNKNOWN;
    bool found = false;
    for (size_t i = 0; i < settings->url_class_count; i++)
        if (strcmp(url_class_name(settings->url_classes[i]), name) == 0) {
            answer = url_class_judge(settings->url_classes[i], subject);
            found = true;
        }
    ck_assert(found);
    settings_release(&settings);
    free(text);
    return answer;
}

START_TEST(classes_name_others) {
    static const char sections[] = "url_class both { any_of = { shops, games }  not = work }\n"
                                   "url_class shops { domain = \"shop.example\" }\n"
                                   "url_class games { domain = \"game.example\" }\n"
                                   "url_class work { client = \"10.1.0.0/16\" }\n";
    struct address at_work = address_of("10.1.0.1"), at_home = address_of("10.2.0.1");
    struct class_subject subject = {.host = SLICE("www.shop.example"), .client = &at_home};
    ck_assert_int_eq(judge_named(sections, "both", &subject), CLASS_YES);
    subject.host = SLICE("news.example");
    ck_assert_int_eq(judge_named(sections, "both", &subject), CLASS_NO);
    subject.host = SLICE("game.example");
    subject.client = &at_work;
    ck_assert_int_eq(judge_named(sections, "both", &subject), CLASS_NO);
}
END_TEST

/* UNKNOWN stays UNKNOWN through not and any_of, and only where it matters. */
START_TEST(what_is_not_known_stays_so) {
    static const char sections[] = "url_class staff { user = \"*\" }\n"
                                   "url_class inside { destination = \"10.0.0.0/8\" }\n"
                                   "url_class here { host = \"a.example\" }\n"
                                   "url_class strangers { not = staff }\n"
                                   "url_class either { any_of = { here, staff } }\n"
                                   "url_class outside { not = inside  host = \"a.example\" }\n";
    struct class_subject subject = {
        .host = SLICE("a.example"), .user_pending = true, .destination_pending = true};
    ck_assert_int_eq(judge_named(sections, "strangers", &subject), CLASS_UNKNOWN);
    ck_assert_int_eq(judge_named(sections, "either", &subject), CLASS_YES);
    ck_assert_int_eq(judge_named(sections, "outside", &subject), CLASS_UNKNOWN);
    subject.host = SLICE("b.example");
    ck_assert_int_eq(judge_named(sections, "either", &subject), CLASS_UNKNOWN);
    ck_assert_int_eq(judge_named(sections, "outside", &subject), CLASS_NO);
    subject.user_pending = false;
    ck_assert_int_eq(judge_named(sections, "strangers", &subject), CLASS_YES);
    ck_assert_int_eq(judge_named(sections, "either", &subject), CLASS_NO);
}
END_TEST

START_TEST(contradictions_are_seen) {
    static const struct {
        const char *sections;
        const char *reason; /* NULL: the class named "c" can match */
    } cases[] = {
        {"url_class c { host = \"a.example\" domain = \"b.example\" }", "none of its hosts"},
        {"url_class c { host = \"a.b.example\" domain = \"b.example\" }", NULL},
        {"url_class c { host = \"*.b.example\" domain = \"b.example\" }", NULL},
        {"url_class c { host = \"*.example\" domain = \"b.example\" }", NULL},
        {"url_class c { method = CONNECT scheme = https }", "a CONNECT has no scheme"},
        {"url_class c { method = { CONNECT, GET } scheme = https }", NULL},
        {"url_class c { not = { all } }", "matches every request"},
        {"url_class c { any_of = { d } }\nurl_class d { not = all }", "none of the classes"},
        {"url_class c { any_of = { d, all } }\nurl_class d { not = all }", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *text;
        ck_assert_int_gt(asprintf(&text, "%s%s\n", head_of_file, cases[i].sections), 0);
        struct settings *settings = settings_from(text);
        const char *reason = url_class_contradiction(settings->url_classes[1]);
        ck_assert_int_eq(reason == NULL, cases[i].reason == NULL);
        ck_assert(reason == NULL || strstr(reason, cases[i].reason) != NULL);
        settings_release(&settings);
        free(text);
    }
}
END_TEST

START_TEST(all_of_ipv6_is_not_ipv4) {
    struct network_set *set = network_set_new();
    struct network all;
    struct address v4 = address_of("10.0.0.1"), mapped = address_of("::ffff:10.0.0.1");
    struct address first = address_of("::"), v6 = address_of("ffff::1");
    ck_assert(network_parse(&all, SLICE("::/0")));
    network_set_add(set, &all);
    network_set_seal(set);
    ck_assert(!network_set_has(set, &v4) && !network_set_has(set, &mapped));
    ck_assert(network_set_has(set, &first) && network_set_has(set, &v6));
    network_set_free(&set);
}
END_TEST

Suite *class_suite(void) {
    const TTest *const tests[] = {
        hours_have_a_beginning_and_an_end,
        hours_go_on_after_midnight,
        bad_hours_are_refused,
        fields_are_searched,
        certificates_are_named_by_subject_or_common_name,
        ports_schemes_and_listeners_are_compared,
        users_are_known_or_pending,
        one_of_the_destinations_is_enough,
        classes_name_others,
        contradictions_are_seen,
        all_of_ipv6_is_not_ipv4,
    };
    const TTest *const with_users[] = {what_is_not_known_stays_so};
    Suite *suite = suite_of("class", tests, COUNT_OF(tests));
    suite_add_with(suite, "access identity", with_users, COUNT_OF(with_users));
    return suite;
}
