/* The filter: a key is let in the second time, and forgotten after a while. */
#include "suites.h"

#include "disk/admission_filter.h"

enum { TURN = 838860 };

static struct cache_key key_of(unsigned number) {
    char text[32];
    return cache_key_of(slice_make(text, (size_t)snprintf(text, sizeof text, "%u", number)));
}

START_TEST(the_second_time_counts) {
    struct admission_filter *filter = admission_filter_new(TURN, TURN);
    unsigned strangers = 0;
    for (unsigned i = 0; i < 50000; i++)
        strangers += admission_filter_has_seen(filter, key_of(i), 1);
    ck_assert_uint_lt(strangers, 50000 / 50);
    for (unsigned i = 0; i < 50000; i++)
        ck_assert(admission_filter_has_seen(filter, key_of(i), 1));
    admission_filter_free(&filter);
    ck_assert_ptr_null(filter);
    admission_filter_free(&filter);
}
END_TEST

/* Two filters of 800,000 keys each take turns. */
START_TEST(what_is_long_past_is_forgotten) {
    enum { MANY = 2 * TURN + TURN / 2 };
    struct admission_filter *filter = admission_filter_new(TURN, TURN);
    unsigned strangers = 0, old = 0, recent = 0;
    for (unsigned i = 0; i < MANY; i++)
        strangers += admission_filter_has_seen(filter, key_of(i), 1);
    ck_assert_uint_lt(strangers, MANY / 30);
    for (unsigned i = 0; i < 10000; i++) {
        recent += admission_filter_has_seen(filter, key_of(MANY - TURN + i), 1);
        old += admission_filter_has_seen(filter, key_of(i), 1);
    }
    ck_assert_uint_eq(recent, 10000);
    ck_assert_uint_lt(old, 10000 / 10);
    admission_filter_free(&filter);
}
END_TEST

/* Heavy keys fill a filter sooner than there is room for keys. */
START_TEST(weights_count) {
    enum { WEIGHT = 1000, WINDOW = 100 };
    struct admission_filter *filter = admission_filter_new(10000, WINDOW * WEIGHT);
    for (unsigned i = 0; i < 3 * WINDOW; i++)
        ck_assert(!admission_filter_has_seen(filter, key_of(i), WEIGHT));
    for (unsigned i = 0; i < WINDOW; i++)
        ck_assert(!admission_filter_has_seen(filter, key_of(i), 0));
    for (unsigned i = 2 * WINDOW; i < 3 * WINDOW - 1; i++) /* nearly as many again */
        ck_assert(admission_filter_has_seen(filter, key_of(i), WEIGHT));
    admission_filter_free(&filter);
}
END_TEST

/* Each time all keys again and some more: what is known at first must be forgotten as they become
 * many, though each was asked for again. */
START_TEST(what_is_seen_again_counts_too) {
    enum { WEIGHT = 1000, WINDOW = 100, KEYS = 20 * WINDOW };
    struct admission_filter *filter = admission_filter_new(10000, WINDOW * WEIGHT);
    unsigned seen = 0;
    for (unsigned count = WINDOW; count <= KEYS; count += WINDOW) {
        seen = 0;
        for (unsigned i = 0; i < count; i++)
            seen += admission_filter_has_seen(filter, key_of(i), WEIGHT);
    }
    ck_assert_uint_lt(seen, KEYS / 50);
    admission_filter_free(&filter);
}
END_TEST

Suite *admission_filter_suite(void) {
    const TTest *tests[] = {
        the_second_time_counts,
        what_is_long_past_is_forgotten,
        weights_count,
        what_is_seen_again_counts_too,
    };
    return suite_of("admission_filter", tests, COUNT_OF(tests));
}
