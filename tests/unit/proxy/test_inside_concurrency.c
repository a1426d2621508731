/* Places for messages at a service inside the proxy. */
#include "suites.h"

#include "base/assert.h"
#include "inside/concurrency.h"

struct place_turn {
    struct inside_turn turn;
    struct task task;
    unsigned ran;
};

struct places_lab {
    struct loop loop;
    struct mailbox mailbox;
    struct inside_concurrency *places;
    struct inside_queue queue;
    struct place_turn turns[3];
};

static void place_on_task(struct task *task) {
    CONTAINER_OF(task, struct place_turn, task)->ran++;
}

static void places_lab_begin(struct places_lab *lab, unsigned most, unsigned queue_max) {
    const struct service_settings settings = {.max_messages = most, .queue_max = queue_max};
    memset(lab, 0, sizeof *lab);
    ck_assert(loop_init(&lab->loop));
    ck_assert(mailbox_init(&lab->mailbox, &lab->loop));
    lab->places = inside_concurrency_new(&settings, NULL);
    inside_queue_init(&lab->queue, lab->places, &settings, &lab->loop, &lab->mailbox);
    for (unsigned i = 0; i < COUNT_OF(lab->turns); i++) {
        task_init(&lab->turns[i].task, place_on_task);
        inside_turn_init(&lab->turns[i].turn, &lab->turns[i].task);
    }
}

static void places_lab_end(struct places_lab *lab) {
    for (unsigned i = 0; i < COUNT_OF(lab->turns); i++)
        inside_turn_leave(&lab->queue, &lab->turns[i].turn);
    inside_queue_release(&lab->queue);
    inside_concurrency_release(&lab->places);
    mailbox_release(&lab->mailbox);
    loop_release(&lab->loop);
}

static enum inside_turn_state take(struct places_lab *lab, unsigned number) {
    return inside_turn_take(&lab->queue, &lab->turns[number].turn);
}

static void leave(struct places_lab *lab, unsigned number) {
    inside_turn_leave(&lab->queue, &lab->turns[number].turn);
}

START_TEST(who_waits_is_called) {
    struct places_lab lab;
    places_lab_begin(&lab, 1, 1);
    ck_assert_int_eq(take(&lab, 0), INSIDE_TURN_TAKEN);
    ck_assert_int_eq(take(&lab, 1), INSIDE_TURN_WAITS);
    ck_assert_int_eq(take(&lab, 2), INSIDE_TURN_FULL);
    leave(&lab, 0);
    loop_run_once(&lab.loop);
    ck_assert_uint_eq(lab.turns[1].ran, 1);
    ck_assert_int_eq(take(&lab, 1), INSIDE_TURN_TAKEN);
    places_lab_end(&lab);
}
END_TEST

/* One that was called and gives up, because its time is over, is not run any more: its turn is the
 * next one's. */
START_TEST(who_was_called_may_leave) {
    struct places_lab lab;
    places_lab_begin(&lab, 1, 2);
    take(&lab, 0);
    take(&lab, 1);
    take(&lab, 2);
    leave(&lab, 0);
    task_cancel(&lab.queue.task);
    lab.queue.task.run(&lab.queue.task);
    ck_assert(lab.turns[1].turn.called);
    leave(&lab, 1);
    loop_run_once(&lab.loop);
    ck_assert_uint_eq(lab.turns[1].ran, 0);
    ck_assert_uint_eq(lab.turns[2].ran, 1);
    ck_assert_int_eq(take(&lab, 2), INSIDE_TURN_TAKEN);
    places_lab_end(&lab);
}
END_TEST

/* Settings that are refused have made places, and no worker uses them. */
START_TEST(refused_settings_limit_nothing) {
    const struct service_settings one = {.max_messages = 1, .queue_max = 1};
    struct places_lab lab;
    places_lab_begin(&lab, 2, 1);
    struct inside_concurrency *refused = inside_concurrency_new(&one, lab.places);
    ck_assert_ptr_eq(refused, lab.places);
    inside_concurrency_release(&refused);
    ck_assert_int_eq(take(&lab, 0), INSIDE_TURN_TAKEN);
    ck_assert_int_eq(take(&lab, 1), INSIDE_TURN_TAKEN);
    places_lab_end(&lab);
}
END_TEST

/* A reload makes another queue; those of the one before wait for the same places. */
START_TEST(who_waits_hears_of_more_places) {
    const struct service_settings three = {.max_messages = 3, .queue_max = 2};
    struct places_lab lab;
    struct inside_queue later;
    places_lab_begin(&lab, 1, 2);
    ck_assert_int_eq(take(&lab, 0), INSIDE_TURN_TAKEN);
    ck_assert_int_eq(take(&lab, 1), INSIDE_TURN_WAITS);
    ck_assert_int_eq(take(&lab, 2), INSIDE_TURN_WAITS);
    inside_queue_init(&later, lab.places, &three, &lab.loop, &lab.mailbox);
    loop_run_once(&lab.loop);
    ck_assert_uint_eq(lab.turns[1].ran, 1);
    ck_assert_int_eq(take(&lab, 1), INSIDE_TURN_TAKEN);
    loop_run_once(&lab.loop);
    ck_assert_uint_eq(lab.turns[2].ran, 1);
    ck_assert_int_eq(take(&lab, 2), INSIDE_TURN_TAKEN);
    inside_queue_release(&later);
    places_lab_end(&lab);
}
END_TEST

Suite *inside_concurrency_suite(void) {
    const TTest *tests[] = {who_waits_is_called, who_was_called_may_leave,
                            refused_settings_limit_nothing, who_waits_hears_of_more_places};
    return suite_of("inside_concurrency", tests, COUNT_OF(tests));
}
