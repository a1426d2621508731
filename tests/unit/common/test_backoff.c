#include "base/backoff.h"

#include "suites.h"

START_TEST(pauses_double_up_to_the_limit) {
    static const uint64_t pauses[] = {100, 200, 400, 800, 1000, 1000};
    uint64_t pause = 100;
    for (unsigned i = 0; i < COUNT_OF(pauses); i++) {
        ck_assert_uint_eq(pause, pauses[i]);
        ck_assert_uint_eq(backoff_after(100, 1000, i + 1), pauses[i]);
        pause = backoff_next(pause, 1000);
    }
    ck_assert_uint_eq(backoff_after(100, 1000, 0), 100);
}
END_TEST

START_TEST(odd_limits_hold) {
    ck_assert_uint_eq(backoff_next(2, 5), 4);
    ck_assert_uint_eq(backoff_next(3, 5), 5);
    ck_assert_uint_eq(backoff_next(9, 5), 5);
    ck_assert_uint_eq(backoff_next(0, 5), 0);
    ck_assert_uint_eq(backoff_next(UINT64_MAX, UINT64_MAX), UINT64_MAX);
    ck_assert_uint_eq(backoff_after(9, 5, 1), 5);
    ck_assert_uint_eq(backoff_after(0, 5, UINT32_MAX), 0);
    ck_assert_uint_eq(backoff_after(1, UINT64_MAX, UINT32_MAX), UINT64_MAX);
}
END_TEST

Suite *backoff_suite(void) {
    const TTest *const tests[] = {pauses_double_up_to_the_limit, odd_limits_hold};
    return suite_of("backoff", tests, COUNT_OF(tests));
}
