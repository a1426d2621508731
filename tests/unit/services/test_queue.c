#include "suites.h"

#include "base/assert.h"
#include "helperd/pool.h"

enum { JOBS = 64 };

static struct job jobs[JOBS];
static struct queue queue;

static struct job *add(unsigned number, const char *client, enum lane lane, uint64_t cost) {
    struct job *job = &jobs[number];
    memset(job, 0, offsetof(struct job, packet));
    job->magic = JOB_MAGIC;
    list_init(&job->place.link);
    job->place.lane = lane;
    job->place.cost = cost;
    queue_set_client(&job->place, client);
    queue_add(&queue, job);
    return job;
}

static void expect_client(const char *told, const char *counted) {
    struct queue_place place;
    queue_set_client(&place, told);
    ck_assert_str_eq(place.client, counted);
}

START_TEST(clients_are_compared_by_whole_names) {
    expect_client("192.0.2.7", "192.0.2.7");
    expect_client("::ffff:192.0.2.7", "192.0.2.7");
    expect_client("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
    expect_client("2001:db8:1:2::1", "2001:db8:1:2::");
    expect_client("2001:db8:1:3::1", "2001:db8:1:3::");
    expect_client("", "");
    expect_client("a\x1b\xff"
                  "b c",
                  "a??b?c");
    char longest[HELPER_CLIENT_MAX];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    expect_client(longest, longest);
}
END_TEST

/* Thirty jobs of one client delay the only one of another by no more than one of them. */
START_TEST(clients_take_turns) {
    queue_init(&queue);
    for (unsigned i = 0; i < 30; i++)
        add(i, "192.0.2.1", LANE_SMALL, 500000);
    struct job *other = add(30, "192.0.2.2", LANE_SMALL, 500000);
    bool found = false;
    for (int i = 0; i < 2; i++)
        found |= queue_take(&queue, LANE_SMALL) == other;
    ck_assert(found);
    for (int i = 0; i < 29; i++)
        ck_assert_ptr_nonnull(queue_take(&queue, LANE_SMALL));
    ck_assert_ptr_null(queue_take(&queue, LANE_SMALL));
    ck_assert_uint_eq(queue.lanes[LANE_SMALL].share_count, 0);
    ck_assert_uint_eq(queue.lanes[LANE_SMALL].cost, 0);
}
END_TEST

/* By what jobs cost, not by how many they are. */
START_TEST(turns_are_for_work) {
    queue_init(&queue);
    for (unsigned i = 0; i < 4; i++)
        add(i, "192.0.2.1", LANE_LARGE, 40000000);
    for (unsigned i = 4; i < 44; i++)
        add(i, "192.0.2.2", LANE_LARGE, 4000000);
    uint64_t done[2] = {0, 0};
    for (unsigned i = 0; i < 22; i++) {
        struct job *job = queue_take(&queue, LANE_LARGE);
        done[strcmp(job->place.client, "192.0.2.1") != 0] += job->place.cost;
    }
    ck_assert_uint_eq(done[0], 80000000);
    ck_assert_uint_eq(done[1], 80000000);
    while (queue_any(&queue) != NULL)
        queue_remove(queue_any(&queue));
}
END_TEST

START_TEST(a_client_keeps_its_order) {
    queue_init(&queue);
    for (unsigned i = 0; i < 5; i++)
        add(i, "192.0.2.1", LANE_LARGE, 1000000);
    queue_remove(&jobs[2]);
    queue_remove(&jobs[2]);
    ck_assert_ptr_eq(queue_take(&queue, LANE_LARGE), &jobs[0]);
    struct job *back = queue_take(&queue, LANE_LARGE);
    ck_assert_ptr_eq(back, &jobs[1]);
    add(6, "192.0.2.2", LANE_LARGE, 1000);
    queue_put_back(&queue, back);
    ck_assert_ptr_eq(queue_take(&queue, LANE_LARGE), back);
    while (queue_any(&queue) != NULL)
        queue_remove(queue_any(&queue));
    ck_assert_uint_eq(queue_count(&queue), 0);
}
END_TEST

static void set_newcomer(struct job *job, const char *client, enum lane lane, uint64_t cost) {
    job->place = (struct queue_place){.lane = lane, .cost = cost};
    queue_set_client(&job->place, client);
}

START_TEST(the_greedy_give_way) {
    static struct job newcomer;
    queue_init(&queue);
    for (unsigned i = 0; i < 6; i++)
        add(i, "192.0.2.1", LANE_LARGE, 20000000);
    add(6, "192.0.2.2", LANE_LARGE, 30000000);
    add(7, "192.0.2.1", LANE_SMALL, 4096);
    set_newcomer(&newcomer, "192.0.2.3", LANE_LARGE, 20000000);
    ck_assert_ptr_eq(queue_most_greedy(&queue, LANE_LARGE, &newcomer), &jobs[5]);
    set_newcomer(&newcomer, "192.0.2.1", LANE_SMALL, 4096); /* in the other lane, too */
    ck_assert_ptr_eq(queue_most_greedy(&queue, LANE_SMALL, &newcomer), &jobs[5]);
    set_newcomer(&newcomer, "192.0.2.1", LANE_LARGE, 20000000);
    ck_assert_ptr_null(queue_most_greedy(&queue, LANE_LARGE, &newcomer));
    set_newcomer(&newcomer, "192.0.2.3", LANE_LARGE, 500000000);
    ck_assert_ptr_null(queue_most_greedy(&queue, LANE_LARGE, &newcomer));
    while (queue_any(&queue) != NULL)
        queue_remove(queue_any(&queue));
}
END_TEST

START_TEST(what_stands_before_is_what_turns_allow) {
    static struct job newcomer;
    queue_init(&queue);
    for (unsigned i = 0; i < 6; i++)
        add(i, "192.0.2.1", LANE_LARGE, 20000000);
    add(6, "192.0.2.2", LANE_LARGE, 5000000);
    set_newcomer(&newcomer, "192.0.2.3", LANE_LARGE, 10000000);
    ck_assert_uint_eq(queue_cost_before(&queue, &newcomer.place), 15000000);
    set_newcomer(&newcomer, "192.0.2.1", LANE_LARGE, 10000000);
    ck_assert_uint_eq(queue_cost_before(&queue, &newcomer.place), 125000000);
    while (queue_any(&queue) != NULL)
        queue_remove(queue_any(&queue));
}
END_TEST

Suite *queue_suite(void) {
    const TTest *const tests[] = {clients_are_compared_by_whole_names,
                                  clients_take_turns,
                                  turns_are_for_work,
                                  a_client_keeps_its_order,
                                  the_greedy_give_way,
                                  what_stands_before_is_what_turns_allow};
    return suite_of("queue", tests, COUNT_OF(tests));
}
