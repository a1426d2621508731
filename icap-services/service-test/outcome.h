/*
 * Prints what came of a test: for people, or as JSON.
 *
 *     int status = test_outcome_print(stdout, &options, &messages, report);     the exit status
 *
 * Threads: one.
 */
#ifndef RETORT_TESTER_OUTCOME_H
#define RETORT_TESTER_OUTCOME_H

#include "service-test/message.h"
#include "service-test/options.h"
#include "service-test/report.h"

int test_outcome_print(FILE *out, const struct tester_options *options,
                       const struct test_messages *messages, const struct test_report *report);

#endif
