#include "service-test/call.h"

#include "base/clocks.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct test_report *the_report;
static _Thread_local struct test_slot *own_slot;
static _Thread_local uint64_t call_begun;
static _Thread_local enum test_call_name last_call;

/* The slot of the thread that crashes tells the tester where. */
static void on_crash(int number) {
    if (own_slot != NULL)
        the_report->crashed_slot = (int)(own_slot - the_report->slots);
    signal(number, SIG_DFL);
    raise(number);
}

void test_call_open(struct test_report *report) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP};
    the_report = report;
    memset(report->slots, 0, sizeof report->slots);
    report->crashed_slot = -1;
#ifndef __SANITIZE_ADDRESS__ /* which says itself what happened */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], on_crash);
#else
    (void)numbers, (void)on_crash;
#endif
    test_call_be(0);
}

void test_call_be(unsigned slot) {
    own_slot = &the_report->slots[slot];
    *own_slot = (struct test_slot){.message = TEST_SERVICE};
}

void test_call_run(int message, const char *plan) {
    last_call = CALL_NONE;
    own_slot->message = message;
    own_slot->in = own_slot->out = 0;
    snprintf(own_slot->plan, sizeof own_slot->plan, "%s", plan);
}

void test_call_at(uint64_t in, uint64_t out) {
    own_slot->in = in;
    own_slot->out = out;
}

/* The tester looks at `begun` only while `call` says that there is a call. */
void test_call_begin(enum test_call_name call) {
    call_begun = clocks_nanoseconds(CLOCK_MONOTONIC);
    own_slot->begun = call_begun / 1000000;
    atomic_signal_fence(memory_order_seq_cst);
    own_slot->call = call;
}

void test_call_end(void) {
    uint64_t took = (clocks_nanoseconds(CLOCK_MONOTONIC) - call_begun) / 1000;
    enum test_call_name call = own_slot->call;
    own_slot->call = CALL_NONE;
    last_call = call;
    if (own_slot != the_report->slots)
        return; /* of the threads, the first alone counts */
    the_report->calls++;
    if (took > the_report->slowest_us && call != CALL_START && call != CALL_LOAD &&
        call != CALL_STOP) {
        the_report->slowest_us = took;
        the_report->slowest = call;
    }
}

static void complain(enum finding_kind kind, uint64_t offset, const char *format,
                     va_list arguments) {
    static const struct test_slot nowhere = {.message = TEST_SERVICE};
    const struct test_slot *slot = own_slot != NULL ? own_slot : &nowhere;
    struct test_finding *finding = test_report_add(the_report, kind, slot->message, slot->plan);
    if (finding == NULL)
        return;
    /* A result is compared when all calls are over. */
    if (kind != FINDING_DIFFERS)
        finding->call = slot->call != CALL_NONE ? slot->call : last_call;
    finding->offset = offset;
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
}

void test_call_complain(enum finding_kind kind, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(kind, 0, format, arguments);
    va_end(arguments);
}

void test_call_complain_at(enum finding_kind kind, uint64_t offset, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(kind, offset, format, arguments);
    va_end(arguments);
}

bool test_call_has_complained(enum finding_kind kind) {
    for (unsigned i = 0; i < the_report->finding_count; i++)
        if (the_report->findings[i].kind == kind &&
            the_report->findings[i].message == own_slot->message)
            return true;
    return false;
}

void test_call_note_use(const char *function) {
    if (own_slot == NULL || own_slot->call == CALL_NONE)
        test_call_complain(FINDING_CALL,
                           "the service calls %s while the host calls no function of it: it may do "
                           "so only inside a call, never from a thread of its own",
                           function);
}
