/*
 * The suites of unit tests, one for each noun of common/, and what they share.
 *
 *     Suite *head_suite(void);                       in test_head.c
 *
 * Threads: one; check forks a process for each test.
 */
#ifndef RETORT_TESTS_UNIT_SUITES_H
#define RETORT_TESTS_UNIT_SUITES_H

#include "guard.h"

#include <check.h>
#include <stdio.h>

Suite *arena_suite(void);
Suite *bytes_suite(void);
Suite *chunked_suite(void);
Suite *date_suite(void);
Suite *failure_suite(void);
Suite *framing_suite(void);
Suite *head_suite(void);
Suite *head_edit_suite(void);
Suite *list_suite(void);
Suite *names_suite(void);
Suite *preference_suite(void);
Suite *shared_table_suite(void);
Suite *ring_suite(void);
Suite *slice_suite(void);
Suite *spool_suite(void);
Suite *backoff_suite(void);
Suite *base64_suite(void);
Suite *text_suite(void);
Suite *table_suite(void);
Suite *structured_suite(void);
Suite *threads_suite(void);
Suite *times_suite(void);
Suite *units_suite(void);
Suite *url_suite(void);

/* A suite of one test case. */
Suite *suite_of(const char *noun, const TTest *const *tests, size_t count);

#define ck_assert_slice_eq(actual, expected)                                                       \
    do {                                                                                           \
        struct slice actual_ = (actual), expected_ = (expected);                                   \
        ck_assert_msg(slice_equal(actual_, expected_), "\"%.*s\" instead of \"%.*s\"",             \
                      SLICE_PRINT(actual_), SLICE_PRINT(expected_));                               \
    } while (0)

/* For loops of many thousand checks: check writes a record at each of its own assertions. */
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#endif
