/* The rings of the history: what they keep, what they add up, and that they never grow. */
#include "suites.h"

#include "admin/history.h"

static struct history_sample samples[HISTORY_MOST];

static void add(struct history *history, uint64_t at, uint64_t hits, uint64_t microseconds) {
    struct times times = {.count = 0};
    if (microseconds > 0)
        times_add(&times, microseconds);
    const struct history_sample sample = {
        .at = at, .lasted = 10, .requests = 2, .hits = hits, .connections = at};
    history_add(history, &sample, &times);
}

START_TEST(samples_come_back_in_their_order) {
    struct history *history = history_new();
    ck_assert_uint_eq(history_read(history, false, 0, samples, HISTORY_MOST), 0);
    for (uint64_t at = 1; at <= 5; at++)
        add(history, at, at * 100, 0);
    ck_assert_uint_eq(history_read(history, false, 0, samples, HISTORY_MOST), 5);
    for (uint64_t i = 0; i < 5; i++)
        ck_assert_uint_eq(samples[i].hits, (i + 1) * 100);
    ck_assert_uint_eq(history_read(history, false, 3, samples, HISTORY_MOST), 2);
    ck_assert_uint_eq(samples[0].at, 4);
    ck_assert_uint_eq(history_read(history, false, 0, samples, 2), 2);
    ck_assert_uint_eq(samples[0].at, 4);
    history_free(&history);
    ck_assert_ptr_null(history);
}
END_TEST

START_TEST(six_samples_become_a_coarse_one) {
    struct history *history = history_new();
    for (uint64_t at = 1; at <= 2 * HISTORY_GATHERED - 1; at++)
        add(history, at, 1, at == 2 ? 100000 : 50);
    ck_assert_uint_eq(history_read(history, true, 0, samples, HISTORY_MOST), 1);
    ck_assert_uint_eq(samples[0].at, HISTORY_GATHERED);
    ck_assert_uint_eq(samples[0].hits, HISTORY_GATHERED);
    ck_assert_uint_eq(samples[0].lasted, 10 * HISTORY_GATHERED);
    ck_assert_uint_eq(samples[0].connections, HISTORY_GATHERED); /* a level: the last one */
    ck_assert_uint_eq(samples[0].measured, HISTORY_GATHERED);
    ck_assert_uint_eq(samples[0].mean, (100000 + 5 * 50) / 6);
    ck_assert_uint_eq(samples[0].p50, 64); /* of all six, not of their quantiles */
    ck_assert_uint_ge(samples[0].p99, 100000);
    history_free(&history);
}
END_TEST

START_TEST(a_million_samples_take_the_memory_of_the_rings) {
    struct history *history = history_new();
    const uint64_t million = 1000000;
    for (uint64_t at = 1; at <= million; at++)
        add(history, at, 1, 0);
    ck_assert_uint_eq(history_read(history, false, 0, samples, HISTORY_MOST), HISTORY_FINE);
    ck_assert_uint_eq(samples[0].at, million - HISTORY_FINE + 1);
    ck_assert_uint_eq(samples[HISTORY_FINE - 1].at, million);
    ck_assert_uint_eq(history_read(history, true, 0, samples, HISTORY_MOST), HISTORY_COARSE);
    ck_assert_uint_eq(samples[HISTORY_COARSE - 1].at, million - million % HISTORY_GATHERED);
    ck_assert_uint_eq(samples[0].mean, 0);
    history_free(&history);
}
END_TEST

Suite *history_suite(void) {
    const TTest *const tests[] = {samples_come_back_in_their_order, six_samples_become_a_coarse_one,
                                  a_million_samples_take_the_memory_of_the_rings};
    return suite_of("history", tests, COUNT_OF(tests));
}
