#include "suites.h"

#include "intercept/refusals.h"

#include <stdio.h>

static const struct refusal_rules rules = {.limit = 3, .lifetime = 100, .entries = 16, .share = 4};

static struct address client_at(const char *ip) {
    struct address address;
    ck_assert(address_parse_ip(&address, slice_from(ip), 1234));
    return address;
}

static unsigned note(struct refusals *refusals, const char *ip, const char *place, time_t now) {
    struct address client = client_at(ip);
    bool evicted;
    return refusals_note(refusals, &rules, &client, slice_from(place), now, &evicted);
}

static bool hold(struct refusals *refusals, const char *ip, const char *place, time_t now) {
    struct address client = client_at(ip);
    return refusals_hold(refusals, &rules, &client, slice_from(place), now);
}

START_TEST(the_third_refusal_of_a_client_counts_for_it_alone) {
    struct refusals *refusals = refusals_new();
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert(!hold(refusals, "10.0.0.1", "a.example:443", 50));
        ck_assert_uint_eq(note(refusals, "10.0.0.1", "a.example:443", 50), i);
    }
    ck_assert(hold(refusals, "10.0.0.1", "a.example:443", 50));
    ck_assert(!hold(refusals, "10.0.0.2", "a.example:443", 50));
    ck_assert(!hold(refusals, "10.0.0.1", "b.example:443", 50));
    ck_assert(!hold(refusals, "10.0.0.1", "a.example:444", 50));
    refusals_free(&refusals);
}
END_TEST

START_TEST(refusals_are_forgotten_after_their_time) {
    struct refusals *refusals = refusals_new();
    for (unsigned i = 0; i < 3; i++)
        note(refusals, "10.0.0.1", "a.example:443", 50);
    ck_assert(hold(refusals, "10.0.0.1", "a.example:443", 149));
    ck_assert(!hold(refusals, "10.0.0.1", "a.example:443", 150));
    ck_assert_uint_eq(note(refusals, "10.0.0.1", "a.example:443", 150), 1);
    refusals_free(&refusals);
}
END_TEST

START_TEST(an_acceptance_ends_the_count) {
    struct refusals *refusals = refusals_new();
    struct address client = client_at("10.0.0.1");
    refusals_forget(refusals, &client, SLICE("a.example:443"));
    note(refusals, "10.0.0.1", "a.example:443", 50);
    note(refusals, "10.0.0.1", "b.example:443", 50);
    note(refusals, "10.0.0.2", "a.example:443", 50);
    refusals_forget(refusals, &client, SLICE("a.example:443"));
    ck_assert_uint_eq(note(refusals, "10.0.0.1", "a.example:443", 50), 1);
    ck_assert_uint_eq(note(refusals, "10.0.0.1", "b.example:443", 50), 2);
    ck_assert_uint_eq(note(refusals, "10.0.0.2", "a.example:443", 50), 2);
    ck_assert_uint_eq(note(refusals, "10.0.0.3", "c.example:443 at fd99::1", 50), 1);
    ck_assert_uint_eq(refusals_clear(refusals, SLICE(""), SLICE("c.example")), 1);
    refusals_free(&refusals);
}
END_TEST

START_TEST(a_client_of_ipv6_is_a_network) {
    struct refusals *refusals = refusals_new();
    for (unsigned i = 0; i < 3; i++)
        note(refusals, i == 0 ? "2001:db8::1" : "2001:db8::2:3", "a.example:443", 50);
    ck_assert(hold(refusals, "2001:db8::ffff", "a.example:443", 50));
    ck_assert(!hold(refusals, "2001:db8:0:1::1", "a.example:443", 50));
    refusals_free(&refusals);
}
END_TEST

START_TEST(a_client_fills_only_its_share) {
    struct refusals *refusals = refusals_new();
    char place[64];
    for (unsigned i = 0; i < 3; i++)
        note(refusals, "10.0.0.1", "a.example:443", 50);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(place, sizeof place, "%u.example:443", i);
        for (unsigned j = 0; j < 3; j++)
            note(refusals, "10.0.0.2", place, 50);
    }
    ck_assert(hold(refusals, "10.0.0.1", "a.example:443", 50));
    ck_assert(hold(refusals, "10.0.0.2", "99.example:443", 50));
    ck_assert(hold(refusals, "10.0.0.2", "96.example:443", 50));
    ck_assert(!hold(refusals, "10.0.0.2", "95.example:443", 50));
    refusals_free(&refusals);
}
END_TEST

START_TEST(the_oldest_of_all_makes_room) {
    struct refusals *refusals = refusals_new();
    char ip[64];
    for (unsigned i = 0; i < 17; i++) {
        snprintf(ip, sizeof ip, "10.0.0.%u", i);
        for (unsigned j = 0; j < 3; j++)
            note(refusals, ip, "a.example:443", 50);
    }
    ck_assert(!hold(refusals, "10.0.0.0", "a.example:443", 50));
    ck_assert(hold(refusals, "10.0.0.1", "a.example:443", 50));
    ck_assert(hold(refusals, "10.0.0.16", "a.example:443", 50));
    refusals_free(&refusals);
}
END_TEST

static void append(void *arg, const struct refusal_report *report) {
    char *out = arg;
    sprintf(out + strlen(out), "%s %s %u\n", report->client, report->place, report->count);
}

START_TEST(entries_are_listed_and_cleared) {
    struct refusals *refusals = refusals_new();
    char list[1000] = "";
    bool evicted;
    note(refusals, "10.0.0.1", "a.example:443", 50);
    note(refusals, "10.0.0.1", "b.example:443", 50);
    note(refusals, "2001:db8::1", "a.example:8443", 50);
    refusals_note(refusals, &rules, NULL, SLICE("c.example:443"), 50, &evicted);
    refusals_each(refusals, append, list);
    ck_assert_str_eq(list, " c.example:443 1\n"
                           "2001:db8::/64 a.example:8443 1\n"
                           "10.0.0.1 b.example:443 1\n"
                           "10.0.0.1 a.example:443 1\n");
    ck_assert_uint_eq(refusals_clear(refusals, SLICE("10.0.0.9"), SLICE("")), 0);
    ck_assert_uint_eq(refusals_clear(refusals, SLICE("10.0.0.1"), SLICE("A.example:443")), 1);
    ck_assert_uint_eq(refusals_clear(refusals, SLICE(""), SLICE("a.example")), 1);
    ck_assert_uint_eq(refusals_clear(refusals, SLICE(""), SLICE("")), 2);
    refusals_free(&refusals);
}
END_TEST

Suite *refusals_suite(void) {
    const TTest *const tests[] = {
        the_third_refusal_of_a_client_counts_for_it_alone,
        refusals_are_forgotten_after_their_time,
        an_acceptance_ends_the_count,
        a_client_of_ipv6_is_a_network,
        a_client_fills_only_its_share,
        the_oldest_of_all_makes_room,
        entries_are_listed_and_cleared,
    };
    return suite_of("refusals", tests, COUNT_OF(tests));
}
