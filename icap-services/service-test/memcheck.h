/*
 * valgrind's memcheck around the worker.
 *
 *     char logs[MEMCHECK_PATH];
 *     if (!memcheck_prepare(logs, error, sizeof error)) ...          valgrind is not installed
 *     ... the worker runs under "valgrind --log-file=LOGS/%p" ...
 *     memcheck_collect(logs, report);                                adds what it found
 *
 * Threads: one.
 */
#ifndef RETORT_TESTER_MEMCHECK_H
#define RETORT_TESTER_MEMCHECK_H

#include "service-test/report.h"

enum { MEMCHECK_PATH = 128 };

bool memcheck_prepare(char logs[MEMCHECK_PATH], char *error, size_t error_size);
/* Removes the logs. */
void memcheck_collect(const char *logs, struct test_report *report);

#endif
