/* Which calls of a service count as slow. */
#include "suites.h"

#include "inside/call.h"

enum { MILLISECOND = 1000 }; /* of microseconds */

struct slow_lab {
    struct loop loop;
    struct net_context net;
    struct inside_instance instance;
    struct inside_service service;
    struct inside_call call;
};

static void slow_lab_open(struct slow_lab *lab) {
    memset(lab, 0, sizeof *lab);
    ck_assert(loop_init(&lab->loop));
    lab->net.loop = &lab->loop;
    INIT_OBJ(&lab->instance, INSIDE_INSTANCE_MAGIC);
    lab->instance.name = "odd";
    lab->call.net = &lab->net;
    lab->call.service = &lab->service;
    lab->call.instance = &lab->instance;
    inside_watchful = false;
}

static uint64_t slow_calls(const struct slow_lab *lab) {
    return lab->service.base.account.slow;
}

/* A call that began `before` microseconds ago by the coarse clock, in a turn of the loop that began
 * `turn` ago. */
static void slow_lab_call(struct slow_lab *lab, uint64_t before, uint64_t turn) {
    uint64_t now = inside_clock_fine();
    lab->loop.now_nanoseconds = (now - turn) * 1000;
    inside_clock_moved(&lab->call, "push", now - before);
}

START_TEST(a_late_clock_makes_no_call_slow) {
    struct slow_lab lab;
    slow_lab_open(&lab);
    slow_lab_call(&lab, 30 * MILLISECOND, MILLISECOND);
    ck_assert_uint_eq(slow_calls(&lab), 0);
    ck_assert(!inside_watchful);
    loop_release(&lab.loop);
}
END_TEST

/* The first one by the coarse clock, those behind it by the fine one. */
START_TEST(a_slow_call_counts) {
    struct slow_lab lab;
    slow_lab_open(&lab);
    slow_lab_call(&lab, 30 * MILLISECOND, 40 * MILLISECOND);
    ck_assert_uint_eq(slow_calls(&lab), 1);
    ck_assert(inside_watchful);
    slow_lab_call(&lab, 2 * MILLISECOND, 40 * MILLISECOND);
    ck_assert_uint_eq(slow_calls(&lab), 1);
    ck_assert(inside_watchful);
    slow_lab_call(&lab, 7 * MILLISECOND, 40 * MILLISECOND);
    ck_assert_uint_eq(slow_calls(&lab), 2);
    inside_watchful = false;
    loop_release(&lab.loop);
}
END_TEST

Suite *inside_slow_suite(void) {
    const TTest *const tests[] = {a_late_clock_makes_no_call_slow, a_slow_call_counts};
    return suite_of("inside_slow", tests, COUNT_OF(tests));
}
