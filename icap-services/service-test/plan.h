/*
 * A plan: one of the ways in which a host may give a message to a service. Hosts differ in how much
 * of the body they show first, in the pieces in which the rest comes, in how much room they have
 * for the result, and in when they ask for it. A service has to give the same result each time.
 *
 *     struct test_plan plan;
 *     if (!test_plan_read(&plan, "preview=12,in=1,out=7", error)) ...        a sentence
 *     char text[TEST_PLAN_TEXT];
 *     test_plan_write(&plan, text);
 *
 *     struct test_plans plans;
 *     test_plans_make(&plans, body.length, true, ops->preview_size, 512);
 *     for (unsigned i = 0; i < plans.count; i++) ... plans.list[i] ...
 *     test_plans_release(&plans);
 *
 *     preview=N    the first N bytes are shown; preview=none: the host has no preview
 *     end          and the host says that these bytes are the whole body
 *     in=all       the body comes at once; in=N: in pieces of N bytes; in=@N: in two pieces, cut
 *                  behind N bytes; in=~N: in pieces of many lengths, by the number N
 *     out=N        there is room for N bytes of the result at a time
 *     pull=late    the host asks for bytes only when the service takes no more
 *     wait=first   what the service waits for comes before the next piece of the body
 *     idle         the host says behind each piece that it has no more for the moment
 *     copy         the host has kept a copy: after a SKIP behind a HOLD it asks for nothing
 *     beside       several runs go on at once, in turn and in threads
 *     stop=N       the body breaks off behind N bytes
 *     leave=N      the receiver leaves behind N bytes of the result
 *
 * Threads: values.
 */
#ifndef RETORT_TESTER_PLAN_H
#define RETORT_TESTER_PLAN_H

#include "base/slice.h"
#include "service-test/report.h"

enum { TEST_PREVIEW_NONE = -1, TEST_PLAN_ERROR = 200 };
#define TEST_NEVER UINT64_MAX

enum test_split { SPLIT_ONCE, SPLIT_PIECES, SPLIT_CUT, SPLIT_MIXED };

struct test_plan {
    int64_t preview;
    bool end;
    enum test_split split;
    uint64_t number; /* of the split: the length of a piece, the place of the cut, or the seed */
    size_t out;
    bool late, wait_first, idle, copy, beside;
    uint64_t stop, leave; /* TEST_NEVER: not at all */
};

/* Plans for a body, the usual one first, and simple ones before others. */
struct test_plans {
    struct test_plan *list;
    unsigned count;
    uint64_t state; /* of the numbers by which places are chosen */
};

/* As most hosts do it: the preview that the service asks for, then all at once. */
struct test_plan test_plan_usual(size_t length, bool has_body, unsigned preview_size);

bool test_plan_read(struct test_plan *plan, const char *text, char error[TEST_PLAN_ERROR]);
void test_plan_write(const struct test_plan *plan, char text[TEST_PLAN_TEXT]);

/* The length of the next piece, at least 1, of the rest of a body. */
size_t test_plan_piece(const struct test_plan *plan, uint64_t at, size_t rest);

void test_plans_make(struct test_plans *plans, size_t length, bool has_body, unsigned preview_size,
                     uint64_t cuts);
void test_plans_release(struct test_plans *plans);

#endif
