/* The doorkeeper: a key is let in the second time, and forgotten after a while. */
#include "suites.h"

#include "disk/doorkeeper.h"

static struct cache_key key_of(unsigned number) {
    char text[32];
    return cache_key_of(slice_make(text, (size_t)snprintf(text, sizeof text, "%u", number)));
}

START_TEST(the_second_time_counts) {
    struct doorkeeper *doorkeeper = doorkeeper_new();
    unsigned strangers = 0;
    for (unsigned i = 0; i < 50000; i++)
        strangers += doorkeeper_has_seen(doorkeeper, key_of(i));
    ck_assert_uint_lt(strangers, 50000 / 50);
    for (unsigned i = 0; i < 50000; i++)
        ck_assert(doorkeeper_has_seen(doorkeeper, key_of(i)));
    doorkeeper_free(&doorkeeper);
    ck_assert_ptr_null(doorkeeper);
    doorkeeper_free(&doorkeeper);
}
END_TEST

/* Two filters of 800,000 keys each take turns. */
START_TEST(what_is_long_past_is_forgotten) {
    enum { TURN = 838860, MANY = 2 * TURN + TURN / 2 };
    struct doorkeeper *doorkeeper = doorkeeper_new();
    unsigned strangers = 0, old = 0, recent = 0;
    for (unsigned i = 0; i < MANY; i++)
        strangers += doorkeeper_has_seen(doorkeeper, key_of(i));
    ck_assert_uint_lt(strangers, MANY / 30);
    for (unsigned i = 0; i < 10000; i++) {
        recent += doorkeeper_has_seen(doorkeeper, key_of(MANY - TURN + i));
        old += doorkeeper_has_seen(doorkeeper, key_of(i));
    }
    ck_assert_uint_eq(recent, 10000);
    ck_assert_uint_lt(old, 10000 / 10);
    doorkeeper_free(&doorkeeper);
}
END_TEST

Suite *doorkeeper_suite(void) {
    const TTest *tests[] = {
        the_second_time_counts,
        what_is_long_past_is_forgotten,
    };
    return suite_of("doorkeeper", tests, COUNT_OF(tests));
}
