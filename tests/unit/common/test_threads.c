/* Threads, queues and clocks. */
#include "suites.h"

#include "base/assert.h"
#include "base/threads.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct seen {
    char name[32];
    bool blocked;
    _Atomic bool done;
};

static void look(void *arg) {
    struct seen *seen = arg;
    sigset_t mask;
    pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    seen->blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGQUIT) == 1;
    atomic_store(&seen->done, true);
}

START_TEST(a_thread_has_a_name_and_no_signals) {
    struct thread thread;
    struct seen seen = {0};
    sigset_t mask;
    ck_assert(thread_start(&thread, look, &seen, "rt-worker-%u", 3u));
    thread_join(&thread);
    ck_assert_str_eq(seen.name, "rt-worker-3");
    ck_assert(seen.blocked);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ck_assert_int_eq(sigismember(&mask, SIGTERM), 0);
    thread_join(&thread); /* it is over */
    ck_assert(thread_join_within(&thread, 0));
}
END_TEST

START_TEST(a_long_name_is_cut) {
    struct seen seen = {0};
    ck_assert(thread_start_alone(look, &seen, "rt-run-%s", "a-long-name-of-a-service"));
    while (!atomic_load(&seen.done))
        usleep(1000);
    ck_assert_str_eq(seen.name, "rt-run-a-long-n");
}
END_TEST

static void wait_for(void *arg) {
    while (!atomic_load((_Atomic bool *)arg))
        usleep(1000);
}

START_TEST(a_join_may_lose_patience) {
    _Atomic bool over = false;
    struct thread thread;
    ck_assert(thread_start(&thread, wait_for, &over, "rt-test"));
    ck_assert(!thread_join_within(&thread, 5));
    ck_assert(thread.started);
    atomic_store(&over, true);
    ck_assert(thread_join_within(&thread, 60000));
    ck_assert(!thread.started);
}
END_TEST

START_TEST(a_wait_ends_at_its_moment) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    uint64_t until = threads_in(20);
    pthread_mutex_lock(&lock);
    while (threads_wait(&condition, &lock, until))
        continue;
    pthread_mutex_unlock(&lock);
    ck_assert_uint_ge(clocks_nanoseconds(CLOCK_MONOTONIC), until);
    ck_assert_uint_lt(clocks_nanoseconds(CLOCK_MONOTONIC), until + 60000000000u);
}
END_TEST

/* Queues. */

enum { JOBS = 200, POOL = 4 };

struct numbered {
    struct list_link link;
    unsigned number;
};

struct pool {
    struct thread_queue queue;
    struct numbered jobs[JOBS];
    _Atomic unsigned done, running, most; /* `most`: running at once */
    unsigned order[JOBS];
    _Atomic bool held;
};

static void pool_main(void *arg) {
    struct pool *pool = arg;
    struct list_link *link;
    while ((link = thread_queue_take(&pool->queue)) != NULL) {
        unsigned running = atomic_fetch_add(&pool->running, 1) + 1;
        for (unsigned most = atomic_load(&pool->most); running > most;)
            if (atomic_compare_exchange_weak(&pool->most, &most, running))
                break;
        while (atomic_load(&pool->held))
            usleep(1000);
        atomic_fetch_sub(&pool->running, 1);
        pool->order[atomic_fetch_add(&pool->done, 1)] =
            CONTAINER_OF(link, struct numbered, link)->number;
    }
}

static bool pool_add(struct pool *pool, unsigned number) {
    pool->jobs[number].number = number;
    pthread_mutex_lock(&pool->queue.lock);
    bool added = thread_queue_add(&pool->queue, &pool->jobs[number].link);
    pthread_mutex_unlock(&pool->queue.lock);
    return added;
}

static void pool_await(const _Atomic unsigned *count, unsigned least) {
    while (atomic_load(count) < least)
        usleep(1000);
}

START_TEST(one_thread_keeps_the_order_and_drains) {
    static struct pool pool;
    thread_queue_init(&pool.queue, 1, pool_main, &pool, "rt-pool");
    for (unsigned i = 0; i < JOBS; i++)
        ck_assert(pool_add(&pool, i));
    thread_queue_end(&pool.queue, THREADS_DRAIN);
    ck_assert(!pool_add(&pool, 0));
    thread_queue_release(&pool.queue);
    ck_assert_uint_eq(pool.done, JOBS);
    ck_assert_uint_eq(pool.queue.waiting, 0);
    for (unsigned i = 0; i < JOBS; i++)
        ck_assert_uint_eq(pool.order[i], i);
}
END_TEST

START_TEST(threads_are_started_when_all_are_busy) {
    static struct pool pool = {.held = true};
    thread_queue_init(&pool.queue, POOL, pool_main, &pool, "rt-pool");
    for (unsigned i = 0; i < POOL; i++) {
        ck_assert(pool_add(&pool, i));
        pool_await(&pool.running, i + 1);
        ck_assert_uint_eq(pool.queue.started, i + 1);
    }
    ck_assert(pool_add(&pool, POOL));
    ck_assert_uint_eq(pool.queue.started, POOL);
    atomic_store(&pool.held, false);
    pool_await(&pool.done, POOL + 1);
    ck_assert_uint_eq(pool.most, POOL);
    thread_queue_release(&pool.queue);
}
END_TEST

START_TEST(an_idle_thread_is_enough) {
    static struct pool pool;
    thread_queue_init(&pool.queue, POOL, pool_main, &pool, "rt-pool");
    for (unsigned i = 0; i < 10; i++) {
        unsigned idle = 0;
        ck_assert(pool_add(&pool, i));
        while (idle == 0) { /* it has done the job */
            pthread_mutex_lock(&pool.queue.lock);
            idle = pool.queue.waiting == 0 ? pool.queue.idle : 0;
            pthread_mutex_unlock(&pool.queue.lock);
        }
    }
    ck_assert_uint_eq(pool.queue.started, 1);
    thread_queue_release(&pool.queue);
    ck_assert_uint_eq(pool.done, 10);
}
END_TEST

START_TEST(what_is_dropped_is_its_owners) {
    static struct pool pool = {.held = true};
    unsigned left = 0;
    thread_queue_init(&pool.queue, 1, pool_main, &pool, "rt-pool");
    for (unsigned i = 0; i < 5; i++)
        ck_assert(pool_add(&pool, i));
    pool_await(&pool.running, 1);
    thread_queue_end(&pool.queue, THREADS_DROP);
    atomic_store(&pool.held, false);
    thread_queue_join(&pool.queue);
    while (thread_queue_pop(&pool.queue) != NULL)
        left++;
    ck_assert_uint_eq(left, 4);
    ck_assert_uint_eq(pool.done, 1);
    thread_queue_release(&pool.queue);
}
END_TEST

START_TEST(a_queue_may_have_had_no_job) {
    struct pool pool = {.done = 0};
    thread_queue_init(&pool.queue, 1, pool_main, &pool, "rt-pool");
    ck_assert(thread_queue_pop(&pool.queue) == NULL);
    thread_queue_release(&pool.queue);
}
END_TEST

/* Clocks. */

struct ticking {
    struct thread_clock clock;
    _Atomic unsigned ticks;
    uint64_t every; /* milliseconds; 0: only when it is woken */
    _Atomic bool held, sleeps, slept;
};

static uint64_t on_tick(void *arg) {
    struct ticking *ticking = arg;
    atomic_fetch_add(&ticking->ticks, 1);
    while (atomic_load(&ticking->held))
        usleep(1000);
    if (atomic_load(&ticking->sleeps))
        atomic_store(&ticking->slept, thread_clock_sleep(&ticking->clock, 600000));
    return ticking->every > 0 ? threads_in(ticking->every) : THREADS_NEVER;
}

static void clock_begin(struct ticking *ticking) {
    thread_clock_init(&ticking->clock, on_tick, ticking);
    ck_assert(thread_clock_start(&ticking->clock, "rt-clock"));
    ck_assert(thread_clock_start(&ticking->clock, "rt-clock"));
}

START_TEST(a_clock_ticks_again_and_again) {
    static struct ticking ticking = {.every = 2};
    clock_begin(&ticking);
    thread_clock_wake(&ticking.clock, 0);
    pool_await(&ticking.ticks, 3);
    thread_clock_release(&ticking.clock);
}
END_TEST

START_TEST(a_clock_ticks_when_it_is_woken) {
    static struct ticking ticking;
    clock_begin(&ticking);
    usleep(5000);
    ck_assert_uint_eq(ticking.ticks, 0);
    uint64_t at = threads_in(30);
    thread_clock_wake(&ticking.clock, threads_in(600000));
    thread_clock_wake(&ticking.clock, at);
    thread_clock_wake(&ticking.clock, threads_in(600000)); /* does not put it off */
    pool_await(&ticking.ticks, 1);
    ck_assert_uint_ge(clocks_nanoseconds(CLOCK_MONOTONIC), at);
    thread_clock_end(&ticking.clock);
    ck_assert_uint_eq(ticking.ticks, 1);
    thread_clock_wake(&ticking.clock, 0);
    ck_assert(thread_clock_start(&ticking.clock, "rt-clock"));
    thread_clock_release(&ticking.clock);
    ck_assert_uint_eq(ticking.ticks, 1);
}
END_TEST

START_TEST(woken_during_a_tick_it_ticks_once_more) {
    static struct ticking ticking = {.held = true};
    clock_begin(&ticking);
    thread_clock_wake(&ticking.clock, 0);
    pool_await(&ticking.ticks, 1);
    thread_clock_wake(&ticking.clock, 0);
    thread_clock_wake(&ticking.clock, 0);
    atomic_store(&ticking.held, false);
    pool_await(&ticking.ticks, 2);
    usleep(5000);
    thread_clock_release(&ticking.clock);
    ck_assert_uint_eq(ticking.ticks, 2);
}
END_TEST

START_TEST(the_end_wakes_a_tick_that_sleeps) {
    static struct ticking ticking = {.sleeps = true, .slept = true};
    clock_begin(&ticking);
    thread_clock_wake(&ticking.clock, 0);
    pool_await(&ticking.ticks, 1);
    thread_clock_release(&ticking.clock);
    ck_assert(!ticking.slept);
}
END_TEST

Suite *threads_suite(void) {
    const TTest *const tests[] = {
        a_thread_has_a_name_and_no_signals,
        a_long_name_is_cut,
        a_join_may_lose_patience,
        a_wait_ends_at_its_moment,
        one_thread_keeps_the_order_and_drains,
        threads_are_started_when_all_are_busy,
        an_idle_thread_is_enough,
        what_is_dropped_is_its_owners,
        a_queue_may_have_had_no_job,
        a_clock_ticks_again_and_again,
        a_clock_ticks_when_it_is_woken,
        woken_during_a_tick_it_ticks_once_more,
        the_end_wakes_a_tick_that_sleeps,
    };
    return suite_of("threads", tests, sizeof tests / sizeof *tests);
}
