#include "suites.h"

#include "limits/limits.h"

#include <pthread.h>
#include <stdio.h>

#define SECONDS UINT64_C(1000000000)

static const int one_section, other_section;

static struct limit_entry *take_as(struct limit_table *table, const void *section, const char *ip,
                                   const struct limit_demand *demand, uint64_t now,
                                   struct limit_verdict *verdict) {
    struct address address;
    char name[LIMIT_NAME];
    ck_assert(address_parse_ip(&address, slice_from(ip), 1));
    const struct limit_key key = {section, address_network_key(&address, 32, 64, name)};
    return limit_table_take(table, &key, demand, now, verdict);
}

/* Takes once, and leaves at once. */
static enum limit_reason once(struct limit_table *table, const char *ip,
                              const struct limit_demand *demand, uint64_t now) {
    struct limit_verdict verdict;
    struct limit_entry *entry = take_as(table, &one_section, ip, demand, now, &verdict);
    ck_assert((entry != NULL) == (verdict.reason == LIMIT_NONE));
    limit_table_leave(table, &entry);
    return verdict.reason;
}

START_TEST(a_bucket_gives_its_burst_and_then_the_rate) {
    struct bucket_rate rate = bucket_rate_of(10, 1, 5);
    struct bucket bucket = {0};
    uint64_t wait, now = 1000 * SECONDS;
    for (unsigned i = 0; i < 5; i++)
        ck_assert(bucket_take(&bucket, &rate, now, &wait));
    ck_assert(!bucket_take(&bucket, &rate, now, &wait));
    ck_assert_uint_eq(wait, SECONDS / 10);
    ck_assert(!bucket_take(&bucket, &rate, now + wait - 1, &wait));
    ck_assert_uint_eq(wait, 1);
    ck_assert(bucket_take(&bucket, &rate, now + SECONDS / 10, &wait));
    ck_assert(!bucket_take(&bucket, &rate, now + SECONDS / 10, &wait));
    ck_assert(!bucket_is_full(&bucket, now + SECONDS / 2));
    ck_assert(bucket_is_full(&bucket, now + SECONDS));
    rate = bucket_rate_of(6, 60, 1);
    ck_assert_uint_eq(rate.interval, 10 * SECONDS);
}
END_TEST

START_TEST(a_bucket_counts_over_a_long_time) {
    struct bucket_rate rate = bucket_rate_of(7, 1, 3);
    struct bucket bucket = {0};
    uint64_t wait;
    unsigned given = 0;
    for (uint64_t now = SECONDS; now <= 101 * SECONDS; now += SECONDS / 1000)
        given += bucket_take(&bucket, &rate, now, &wait);
    ck_assert_uint_ge(given, 700);
    ck_assert_uint_le(given, 703);
}
END_TEST

/* Two that take turns get the same, and together the rate. */
START_TEST(reservations_stand_in_line) {
    struct bucket bucket = {0};
    uint64_t now = 5 * SECONDS, credit = SECONDS / 10, last = 0;
    uint64_t cost = bucket_cost(1000, 10000);
    ck_assert_uint_eq(cost, SECONDS / 10);
    ck_assert_uint_le(bucket_reserve(&bucket, cost, credit, now), now);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t at = bucket_reserve(&bucket, cost, credit, now);
        ck_assert_uint_eq(at, now + i * cost);
        ck_assert_uint_ge(at, last);
        last = at;
    }
    bucket_give_back(&bucket, cost);
    ck_assert_uint_eq(bucket_reserve(&bucket, cost, credit, now), last);
    bucket = (struct bucket){3};
    bucket_give_back(&bucket, 10);
    ck_assert_uint_eq(bucket.full_at, 0);
}
END_TEST

START_TEST(names_are_networks_users_or_all) {
    struct address address;
    char name[LIMIT_NAME], text[LIMIT_NAME_TEXT];
    struct {
        const char *ip;
        unsigned v4, v6;
        const char *text;
    } cases[] = {
        {"192.0.2.77", 32, 64, "192.0.2.77"},
        {"192.0.2.77", 24, 64, "192.0.2.0/24"},
        {"192.0.2.77", 0, 64, "0.0.0.0/0"},
        {"::ffff:192.0.2.77", 32, 64, "192.0.2.77"},
        {"2001:db8:1:2:3::4", 32, 64, "2001:db8:1:2::/64"},
        {"2001:db8:1:ff:3::4", 32, 57, "2001:db8:1:80::/57"},
        {"2001:db8::1", 32, 128, "2001:db8::1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ck_assert(address_parse_ip(&address, slice_from(cases[i].ip), 9));
        struct slice got = address_network_key(&address, cases[i].v4, cases[i].v6, name);
        limit_name_text(got, text);
        ck_assert_str_eq(text, cases[i].text);
    }
    limit_name_text(limit_name_of_user(SLICE("anna"), name), text);
    ck_assert_str_eq(text, "user anna");
    limit_name_text(limit_name_of_all(name), text);
    ck_assert_str_eq(text, "all");
    char longest[600];
    memset(longest, 'x', sizeof longest);
    size_t length =
        limit_name_text(limit_name_of_user(slice_make(longest, sizeof longest), name), text);
    ck_assert_uint_eq(length, LIMIT_USER + 5);
}
END_TEST

START_TEST(each_client_and_section_counts_alone) {
    struct limit_table *table = limit_table_new(1000);
    const struct limit_demand demand = {.rate = bucket_rate_of(1, 1, 2)};
    struct limit_verdict verdict;
    uint64_t now = 100 * SECONDS;
    ck_assert_int_eq(once(table, "10.0.0.1", &demand, now), LIMIT_NONE);
    ck_assert_int_eq(once(table, "10.0.0.1", &demand, now), LIMIT_NONE);
    ck_assert_int_eq(once(table, "10.0.0.1", &demand, now), LIMIT_RATE);
    ck_assert_int_eq(once(table, "10.0.0.2", &demand, now), LIMIT_NONE);
    struct limit_entry *entry = take_as(table, &other_section, "10.0.0.1", &demand, now, &verdict);
    ck_assert_ptr_nonnull(entry);
    limit_table_leave(table, &entry);
    ck_assert_int_eq(once(table, "10.0.0.1", &demand, now + SECONDS), LIMIT_NONE);
    ck_assert_uint_eq(limit_table_count(table), 3);
    limit_table_free(&table);
}
END_TEST

/* Each address of a network asks until it is refused. */
static void fill(struct limit_table *table, const char *format, unsigned count,
                 const struct limit_demand *demand, uint64_t now) {
    char ip[64];
    for (unsigned i = 0; i < count; i++) {
        snprintf(ip, sizeof ip, format, i / 200, i % 200);
        while (once(table, ip, demand, now) == LIMIT_NONE)
            ;
    }
}

START_TEST(a_crowd_makes_room_for_others_and_not_for_itself) {
    static const struct {
        const char *crowd, *same, *other;
    } cases[] = {
        {"2001:db8:7:%x%02x::1", "2001:db8:7:ff00::1", "2001:db8:8::1"},
        {"2001:db8:%x%02x::1", "2001:db8:ff00::1", "2001:db9::1"},
        {"2001:db8:7:%x%02x::1", "2001:db8:7:ff00::1", "198.51.100.1"},
        {"10.0.%u.%u", "10.0.255.255", "10.1.1.1"},
    };
    const struct limit_demand demand = {.rate = bucket_rate_of(1, 1000, 1)};
    uint64_t now = 10000 * SECONDS;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct limit_table *table = limit_table_new(1000);
        fill(table, cases[i].crowd, 3000, &demand, now);
        size_t count = limit_table_count(table);
        ck_assert_uint_ge(count, 1000);
        ck_assert_int_eq(once(table, cases[i].same, &demand, now), LIMIT_TABLE_FULL);
        ck_assert_int_eq(once(table, cases[i].other, &demand, now), LIMIT_NONE);
        ck_assert_int_eq(once(table, cases[i].other, &demand, now), LIMIT_RATE);
        ck_assert_uint_eq(limit_table_count(table), count);
        limit_table_free(&table);
    }
}
END_TEST

START_TEST(what_is_active_is_counted_and_given_back) {
    struct limit_table *table = limit_table_new(1000);
    const struct limit_demand demand = {.most_active = 2, .rate = bucket_rate_of(1, 10, 3)};
    struct limit_verdict verdict;
    struct limit_entry *held[2];
    for (unsigned i = 0; i < 2; i++)
        held[i] = take_as(table, &one_section, "::1", &demand, SECONDS, &verdict);
    ck_assert_ptr_eq(held[0], held[1]);
    ck_assert_int_eq(once(table, "::1", &demand, SECONDS), LIMIT_ACTIVE);
    limit_table_return(table, &held[0], &demand);
    ck_assert_ptr_null(held[0]);
    ck_assert_int_eq(once(table, "::1", &demand, SECONDS), LIMIT_NONE);
    ck_assert_int_eq(once(table, "::1", &demand, SECONDS), LIMIT_NONE);
    ck_assert_int_eq(once(table, "::1", &demand, SECONDS), LIMIT_RATE);
    limit_table_leave(table, &held[1]);
    limit_table_leave(table, &held[1]);
    limit_table_free(&table);
}
END_TEST

/* A client with many addresses fills the table. What is held or at its limit stays. */
START_TEST(many_addresses_free_nobody) {
    struct limit_table *table = limit_table_new(160);
    const struct limit_demand demand = {.rate = bucket_rate_of(1, 60, 2)};
    const struct limit_demand hold = {.most_active = 1};
    struct limit_verdict verdict;
    uint64_t now = 100 * SECONDS;
    struct limit_entry *held = take_as(table, &other_section, "2001:db8::1", &hold, now, &verdict);
    for (unsigned i = 0; i < 3; i++)
        once(table, "2001:db8:0:1::1", &demand, now);
    for (unsigned i = 0; i < 5000; i++) {
        char ip[64];
        snprintf(ip, sizeof ip, "2001:db8:%x:%x::1", 0x10 + i / 256, i % 256);
        struct limit_entry *entry = take_as(table, &one_section, ip, &demand, now + i, &verdict);
        ck_assert_ptr_nonnull(entry);
        limit_table_leave(table, &entry);
        ck_assert_uint_le(limit_table_count(table), 160 + 16);
    }
    ck_assert(verdict.evicted);
    ck_assert_int_eq(once(table, "2001:db8:0:1::1", &demand, now + 1 * SECONDS), LIMIT_RATE);
    ck_assert_ptr_null(take_as(table, &other_section, "2001:db8::1", &hold, now, &verdict));
    ck_assert_int_eq(verdict.reason, LIMIT_ACTIVE);
    limit_table_leave(table, &held);
    limit_table_free(&table);
}
END_TEST

/* All entries are at their limit: newcomers are refused, until the first ones are full again. */
START_TEST(a_full_table_refuses) {
    struct limit_table *table = limit_table_new(16);
    const struct limit_demand demand = {.rate = bucket_rate_of(1, 60, 1)};
    unsigned refused = 0;
    char ip[32];
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(ip, sizeof ip, "10.1.%u.%u", i / 250, i % 250);
        enum limit_reason reason = once(table, ip, &demand, SECONDS);
        refused += reason == LIMIT_TABLE_FULL;
        ck_assert_int_ne(reason, LIMIT_ACTIVE);
        once(table, ip, &demand, SECONDS);
    }
    ck_assert_uint_eq(refused + limit_table_count(table), 1000);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(ip, sizeof ip, "10.2.%u.%u", i / 250, i % 250);
        ck_assert_int_eq(once(table, ip, &demand, 1000 * SECONDS), LIMIT_NONE);
    }
    limit_table_set_room(table, 0, 2000 * SECONDS);
    ck_assert_uint_le(limit_table_count(table), 16);
    limit_table_free(&table);
}
END_TEST

static bool note_entry(void *arg, const struct limit_report *report) {
    struct limit_report *sum = arg;
    if (report->section == &one_section) {
        sum->taken += report->taken;
        sum->refused += report->refused;
    }
    return ++sum->active < 3;
}

static bool is_named(void *arg, const struct limit_report *report) {
    return report->section == &one_section && strcmp(report->name, arg) == 0;
}

static bool any_entry(void *arg, const struct limit_report *report) {
    return arg == NULL && report->name != NULL;
}

START_TEST(limit_entries_are_listed_and_cleared) {
    struct limit_table *table = limit_table_new(1000);
    const struct limit_demand demand = {.rate = bucket_rate_of(1, 60, 1)};
    struct limit_verdict verdict;
    struct limit_report sum = {0};
    char name[] = "10.0.0.1";
    uint64_t now = 9 * SECONDS;
    once(table, "10.0.0.1", &demand, now);
    once(table, "10.0.0.1", &demand, now);
    once(table, "10.0.0.2", &demand, now);
    struct limit_entry *held = take_as(table, &other_section, "10.0.0.1", &demand, now, &verdict);
    limit_table_each(table, now, note_entry, &sum);
    ck_assert_uint_eq(sum.active, 3);
    ck_assert_uint_eq(sum.taken, 2);
    ck_assert_uint_eq(sum.refused, 1);
    ck_assert_uint_eq(limit_table_clear(table, now, is_named, name), 1);
    ck_assert_int_eq(once(table, "10.0.0.1", &demand, now), LIMIT_NONE);
    ck_assert_int_eq(once(table, "10.0.0.2", &demand, now), LIMIT_RATE);
    ck_assert_uint_eq(limit_table_clear(table, now, any_entry, NULL), 3);
    ck_assert_uint_eq(limit_table_count(table), 1);
    limit_table_leave(table, &held);
    ck_assert_uint_eq(limit_table_clear(table, now, any_entry, NULL), 1);
    limit_table_free(&table);
}
END_TEST

static void *use_table(void *arg) {
    struct limit_table *table = arg;
    const struct limit_demand demand = {.most_active = 3};
    struct limit_verdict verdict;
    char ip[32];
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(ip, sizeof ip, "10.0.0.%u", i % 50);
        struct limit_entry *entry = take_as(table, &one_section, ip, &demand, i + 1, &verdict);
        if (entry != NULL)
            limit_table_reserve(table, entry, PACE_DOWN, 3, 1, i);
        limit_table_leave(table, &entry);
    }
    return NULL;
}

START_TEST(threads_share_the_table) {
    struct limit_table *table = limit_table_new(20);
    pthread_t threads[4];
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_table, table), 0);
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    limit_table_clear(table, 0, any_entry, NULL);
    ck_assert_uint_eq(limit_table_count(table), 0);
    limit_table_free(&table);
}
END_TEST

/* Is the user at the limit of one connection? */
static bool has_a_connection(struct limits *limits, const void *section, unsigned user) {
    const struct limit_demand demand = {.most_active = 1};
    struct limit_verdict verdict;
    char name[LIMIT_NAME], text[20];
    snprintf(text, sizeof text, "user%u", user);
    const struct limit_key key = {section, limit_name_of_user(slice_from(text), name)};
    struct limit_entry *entry = limit_table_take(limits->table, &key, &demand, SECONDS, &verdict);
    limit_table_leave(limits->table, &entry);
    return verdict.reason == LIMIT_ACTIVE;
}

START_TEST(a_connection_counts_for_few_users_at_a_time) {
    enum { USERS = 3 * CONNECTION_HOLDS_MAX };
    const struct limit_demand demand = {.most_active = 1};
    struct limits *limits = limits_new(1000);
    struct connection_hold *holds = NULL;
    struct limit_verdict verdict;
    for (unsigned user = 0; user < USERS; user++) {
        char name[LIMIT_NAME], text[20];
        snprintf(text, sizeof text, "user%u", user);
        struct slice of_user = limit_name_of_user(slice_from(text), name);
        const struct limit_key key = {&one_section, of_user}, other = {&other_section, of_user};
        for (unsigned again = 0; again < 2; again++)
            ck_assert(connection_holds_take(&holds, limits, &key, &demand, SECONDS, &verdict));
        if (user == 0)
            ck_assert(connection_holds_take(&holds, limits, &other, &demand, SECONDS, &verdict));
    }
    for (unsigned user = 0; user < USERS; user++)
        ck_assert(has_a_connection(limits, &one_section, user) ==
                  (user >= USERS - CONNECTION_HOLDS_MAX));
    ck_assert(has_a_connection(limits, &other_section, 0));
    connection_holds_release(&holds, limits);
    for (unsigned user = 0; user < USERS; user++)
        ck_assert(!has_a_connection(limits, &one_section, user));
    ck_assert(!has_a_connection(limits, &other_section, 0));
    limits_free(&limits);
}
END_TEST

Suite *limit_table_suite(void) {
    const TTest *const tests[] = {
        a_bucket_gives_its_burst_and_then_the_rate,
        a_bucket_counts_over_a_long_time,
        reservations_stand_in_line,
        names_are_networks_users_or_all,
        each_client_and_section_counts_alone,
        a_crowd_makes_room_for_others_and_not_for_itself,
        what_is_active_is_counted_and_given_back,
        many_addresses_free_nobody,
        a_full_table_refuses,
        limit_entries_are_listed_and_cleared,
        threads_share_the_table,
        a_connection_counts_for_few_users_at_a_time,
    };
    return suite_of("limit_table", tests, COUNT_OF(tests));
}
