/*
 * The suites of unit tests of the services' algorithms, and what they share.
 *
 *     struct slice input = guard_put(bytes);         a copy with a forbidden page behind it
 *
 * Threads: one; check forks a process for each test.
 */
#ifndef RETORT_TESTS_UNIT_SERVICES_SUITES_H
#define RETORT_TESTS_UNIT_SERVICES_SUITES_H

#include "base/slice.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

Suite *accept_encoding_suite(void);
Suite *adapted_head_suite(void);
Suite *arguments_suite(void);
Suite *driver_suite(void);
Suite *encoder_suite(void);
Suite *filter_suite(void);
Suite *gif_gray_suite(void);
Suite *helper_line_suite(void);
Suite *helperd_settings_suite(void);
Suite *helper_protocol_suite(void);
Suite *image_type_suite(void);
Suite *jpeg_gray_suite(void);
Suite *module_suite(void);
Suite *option_suite(void);
Suite *picture_suite(void);
Suite *picture_cost_suite(void);
Suite *png_gray_suite(void);
Suite *png_info_suite(void);
Suite *policy_suite(void);
Suite *queue_suite(void);
Suite *recipe_suite(void);
Suite *request_kind_suite(void);
Suite *scanner_suite(void);
Suite *service_suite(void);
Suite *text_table_suite(void);
Suite *url_pattern_suite(void);
Suite *webp_gray_suite(void);

enum { GUARD_MAX = 128 * 1024 };

/* A copy of the bytes that ends where a page begins that may not be read. Valid until the next
 * call. */
struct slice guard_put(struct slice bytes);

Suite *suite_of(const char *noun, const TTest *const *tests, size_t count);

/* For loops of many thousand checks: check writes a record at each of its own assertions. */
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#endif
