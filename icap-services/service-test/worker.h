/*
 * The worker: the process that has the service in it. It loads the module, starts the service, and
 * runs it against each message, in all ways. The tester (watch.h) starts another one when it dies.
 *
 *     _exit(test_worker(&options, &messages, report));
 *
 * Beside the plans of a message, which run one after the other, it runs the message several times
 * at once, step by step in turn and in threads, and looks whether memory and descriptors come back.
 *
 * Threads: the worker makes some for a while.
 */
#ifndef RETORT_TESTER_WORKER_H
#define RETORT_TESTER_WORKER_H

#include "service-test/message.h"
#include "service-test/options.h"
#include "service-test/report.h"

/* Begins with the message report->unit, and notes there how far it is. Returns an exit status. */
int test_worker(const struct tester_options *options, const struct test_messages *messages,
                struct test_report *report);

#endif
