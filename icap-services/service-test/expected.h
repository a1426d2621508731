/*
 * What a message has to become, each time. The first run says it, and the others are held to it.
 *
 *     struct test_expected expected;
 *     test_expected_init(&expected, message, &report->messages[i], ops->preview_size, false);
 *     test_expected_check(&expected, &plan, &result);
 *     test_expected_release(&expected);
 *
 * Equal are the outcome, the head and the bytes of the body. Whether a service adapts at all may
 * depend on how much of the body the preview shows: that is noted, and is no broken promise. Among
 * plans with the same preview it may not.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_TESTER_EXPECTED_H
#define RETORT_TESTER_EXPECTED_H

#include "service-test/run.h"

struct test_expected {
    const struct test_message *message;
    struct test_result first; /* the first that was adapted or answered; outcome NONE: none yet */
    char first_plan[TEST_PLAN_TEXT];
    /* enum test_outcome: of no preview, and of each size, without and with "end" */
    unsigned char *by_preview;
    size_t previews;
    struct test_message_report *report;
    bool may_fail;
};

void test_expected_init(struct test_expected *expected, const struct test_message *message,
                        struct test_message_report *report, unsigned preview_size, bool may_fail);
void test_expected_check(struct test_expected *expected, const struct test_plan *plan,
                         const struct test_result *result);
void test_expected_release(struct test_expected *expected);

#endif
