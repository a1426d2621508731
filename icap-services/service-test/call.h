/*
 * Calls of the service's functions: where the worker is, for the tester who watches it, and what is
 * found out meanwhile.
 *
 *     test_call_open(report);                             once, before threads
 *     test_call_be(slot);                                 each thread
 *     test_call_run(message, plan);                       a run begins
 *     test_call_begin(CALL_PUSH);
 *     took = ops->push(state, bytes);
 *     test_call_end();
 *     if (took > bytes.length)
 *         test_call_complain(FINDING_CALL, "push took %zu of %zu bytes", took, bytes.length);
 *
 * Threads: each has its own slot of the report. A thread without one is none of ours: a service
 * must not call its host from there.
 */
#ifndef RETORT_TESTER_CALL_H
#define RETORT_TESTER_CALL_H

#include "service-test/report.h"

void test_call_open(struct test_report *report);
void test_call_be(unsigned slot);
void test_call_run(int message, const char *plan);
/* How far the run is: bytes of the body in and out. */
void test_call_at(uint64_t in, uint64_t out);

void test_call_begin(enum test_call_name call);
void test_call_end(void);

/* The service uses its host: it may do so only inside a call. */
void test_call_note_use(const char *function);
/* A promise was broken in the present run. */
void test_call_complain(enum finding_kind kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Likewise, at a place of the result. */
void test_call_complain_at(enum finding_kind kind, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Has the present run, or another one of this message, broken a promise of this kind? */
bool test_call_has_complained(enum finding_kind kind);

#endif
