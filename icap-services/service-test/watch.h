/*
 * Watches the worker: starts it, ends it when a call takes too long, notes where it crashed, and
 * starts another one behind the message at which it died.
 *
 *     test_watch(&options, &messages, report, fd, argv);
 *     ... report->findings ...
 *
 * The worker is this program with the option --worker, so that it can run under valgrind. What
 * memcheck finds is added to the report.
 *
 * Threads: one.
 */
#ifndef RETORT_TESTER_WATCH_H
#define RETORT_TESTER_WATCH_H

#include "service-test/message.h"
#include "service-test/options.h"
#include "service-test/report.h"

/* `fd` is the memory of the report; `argv` are the program's arguments. The worker gets both. */
void test_watch(const struct tester_options *options, const struct test_messages *messages,
                struct test_report *report, int fd, char **argv);

#endif
