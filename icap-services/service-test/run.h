/*
 * A run: one message on its way through an instance of the service, as one plan says. The run is
 * the host of a driver (service/driver.h), whose steps it takes in the order of the plan; around each
 * call it looks whether the service keeps its promises, and notes in the report those that it does not.
 *
 *     struct test_run run;
 *     struct test_result result;
 *     test_run_begin(&run, &instance, message, index, &plan, &options);
 *     while (test_run_step(&run))
 *         ;
 *     test_run_end(&run, &result);
 *     ... result.outcome, result.head, result.body ...
 *     test_result_release(&result);
 *
 * Several runs can go on at once, a step of each in turn.
 *
 * Threads: a run belongs to one thread.
 */
#ifndef RETORT_TESTER_RUN_H
#define RETORT_TESTER_RUN_H

#include "service-test/instance.h"
#include "service-test/message.h"
#include "service-test/plan.h"
#include "service/driver.h"

/*
 * Guarded memory: bytes that end where a page begins that nobody may touch. A service that reads
 * behind a piece of the body, or writes behind the room for its result, crashes there.
 */
struct guarded {
    char *memory; /* NULL: none yet */
    size_t size;  /* without the guard */
    size_t taken;
};

/* What the receiver gets. */
struct test_result {
    enum test_outcome outcome;
    bool cut_short;    /* the plan ended the run early: the result is the beginning of one */
    struct slice head; /* of an adapted message or an answer; the result's memory */
    char *body;
    size_t length, room;
    bool failed; /* the service said that it could not adapt */
    char failed_because[32];
    uint64_t held_most;
};

struct test_run {
    unsigned magic;
#define TEST_RUN_MAGIC 0x7e5723u
    struct test_instance *instance;
    const struct test_message *message;
    int index;
    const struct test_plan *plan;
    const struct tester_options *options;
    char plan_text[TEST_PLAN_TEXT];
    struct arena arena;
    struct http_head request, response, request_kept, head_kept;
    struct driver driver; /* over: so is the run */
    struct service_exchange exchange_kept;
    struct slice head_before, head_text; /* as text: of the original; of what the host sends */
    uint64_t told;                       /* body_length at the verdict */
    bool skipped;                        /* after HOLD: what comes has to be the original */
    size_t piece;                        /* bytes that are offered at the moment */
    uint64_t begun;                      /* milliseconds */
    struct guarded in, out;
    struct test_result result;
};

void test_run_begin(struct test_run *run, struct test_instance *instance,
                    const struct test_message *message, int index, const struct test_plan *plan,
                    const struct tester_options *options);
/* False: the run is over. */
bool test_run_step(struct test_run *run);
/* Calls `end` of the service. The caller releases the result. */
void test_run_end(struct test_run *run, struct test_result *result);
/* All of that. */
void test_run_whole(struct test_instance *instance, const struct test_message *message, int index,
                    const struct test_plan *plan, const struct tester_options *options,
                    struct test_result *result);

void test_result_release(struct test_result *result);

#endif
