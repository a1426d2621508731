/* Histograms of durations. */
#include "suites.h"

#include "base/times.h"

START_TEST(bounds_belong_to_the_element_below) {
    ck_assert_uint_eq(times_index(0), 0);
    ck_assert_uint_eq(times_index(1), 0);
    for (unsigned i = 0; i + 1 < TIMES_COUNT; i++) {
        ck_assert_uint_eq(times_index((uint64_t)TIMES_FIRST << i), i);
        ck_assert_uint_eq(times_index(((uint64_t)TIMES_FIRST << i) + 1), i + 1);
    }
    ck_assert_uint_eq(times_index(UINT64_MAX), TIMES_COUNT - 1);
}
END_TEST

START_TEST(sums_and_quantiles) {
    struct times one = {0}, all = {0};
    ck_assert_uint_eq(times_quantile(&all, 0.5), 0);
    for (unsigned i = 0; i < 9; i++)
        times_add(&one, 100);
    times_add(&one, 1000000);
    times_sum(&all, &one);
    times_sum(&all, &one);
    ck_assert_uint_eq(all.count, 20);
    ck_assert_uint_eq(all.sum, 2 * (9 * 100 + 1000000));
    ck_assert_uint_eq(times_quantile(&all, 0.5), 128);
    ck_assert_uint_eq(times_quantile(&all, 0.99), 64 << 14);
}
END_TEST

Suite *times_suite(void) {
    const TTest *const tests[] = {bounds_belong_to_the_element_below, sums_and_quantiles};
    return suite_of("times", tests, sizeof tests / sizeof *tests);
}
