#include "helperd/pool_workers.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/plural.h"
#include "helperd/dispatch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

/* A helper that lived longer than this did not fail at its start. */
enum { SETTLED_AFTER = 5000 };

/* Workers are replaced one at a time, so that the pool goes on working: the next one leaves when
 * this one is back. */
void pool_workers_replace_one(struct pool *pool) {
    struct worker *candidate = NULL;
    LIST_FOR_EACH (link, &pool->workers) {
        struct worker *worker = CONTAINER_OF(link, struct worker, link);
        if (worker->state == WORKER_LEAVING)
            return;
        if (worker->replace && worker->state == WORKER_IDLE)
            candidate = worker;
    }
    if (candidate != NULL)
        worker_retire(candidate, POOL_LEAVE_TIME);
}

static void pool_workers_start_later(struct worker *worker) {
    loop_timer_after(worker->loop, &worker->timer,
                     backoff_after(POOL_BACKOFF_FIRST, POOL_BACKOFF_LAST, worker->failures));
}

static void pool_workers_start(struct pool *pool, struct worker *worker) {
    if (worker_start(worker, pool->settings.command, &pool->settings.terms)) {
        log_info("pool %s: helper %d started at nice %d", pool->settings.name, (int)worker->pid,
                 pool->settings.terms.nice);
        if (worker->spare)
            loop_timer_after(worker->loop, &worker->timer, pool->settings.idle);
        return;
    }
    log_error("pool %s: no new helper process: %s; trying again", pool->settings.name,
              strerror(errno));
    worker->failures++;
    pool_workers_start_later(worker);
}

/* The number of workers that will not be removed soon, without the spare. */
unsigned pool_workers_lasting(const struct pool *pool) {
    unsigned count = 0;
    LIST_FOR_EACH (link, &pool->workers) {
        const struct worker *worker = CONTAINER_OF(link, struct worker, link);
        count += !worker->surplus && !worker->spare;
    }
    return count;
}

static void on_worker_timer(struct timer *timer) {
    struct worker *worker = CONTAINER_OF(timer, struct worker, timer);
    struct pool *pool;
    CAST_OBJ(pool, worker->pool, POOL_MAGIC);
    if (worker->state == WORKER_LEAVING)
        worker_kill(worker);
    else if (worker->state == WORKER_DOWN) {
        pool_workers_start(pool, worker);
        dispatch_jobs(pool);
    } else if (worker->state == WORKER_IDLE &&
               (worker->spare || pool_workers_lasting(pool) > pool->settings.processes)) {
        worker->surplus = true;
        worker_retire(worker, POOL_LEAVE_TIME);
    }
}

static void on_job_deadline(struct timer *timer) {
    struct worker *worker = CONTAINER_OF(timer, struct worker, job_timer);
    struct pool *pool;
    CAST_OBJ(pool, worker->pool, POOL_MAGIC);
    if (worker->state != WORKER_BUSY)
        return;
    log_warn("pool %s: helper %d did not finish a job before its deadline and is killed",
             pool->settings.name, (int)worker->pid);
    worker->overdue = true;
    worker_kill(worker);
    if (worker->job != NULL)
        job_finish(worker->job, HELPER_TIMEOUT, NULL, "the helper was killed at the deadline");
}

/* The worker does not work on a job any more: it has given a result, or its process has ended. So
 * the times also have the jobs that killed a helper, and those that took until their deadline. */
static void pool_workers_leave_work(struct pool *pool, struct worker *worker) {
    if (!worker->at_work)
        return;
    struct lane_counts *lane = &pool->lanes[worker->lane];
    lane->at_work--;
    times_add(&lane->working, clocks_microseconds(CLOCK_MONOTONIC) - worker->got_job);
    worker->at_work = false;
}

static void pool_workers_take_result(struct pool *pool, struct worker *worker,
                                     struct helper_packet *result) {
    timer_cancel(&pool->loop->timers, &worker->job_timer);
    worker->served++;
    worker->failures = 0;
    pool_workers_leave_work(pool, worker);
    breaker_note_result(&pool->breaker);
    if (worker->job != NULL && result->message.status == HELPER_DONE)
        dispatch_note_pace(pool, worker->job);
    if (worker->job != NULL)
        job_finish(worker->job, result->message.status, result, NULL);
}

/* Decides what an idle worker does next: it leaves, or it takes a job. */
static void pool_workers_settle(struct pool *pool, struct worker *worker) {
    bool worn = pool->settings.max_jobs > 0 && worker->served >= pool->settings.max_jobs;
    if (worker->surplus || worn || pool->retiring)
        worker_retire(worker, POOL_LEAVE_TIME);
    if (worker->replace)
        pool_workers_replace_one(pool);
    dispatch_jobs(pool);
    if (worker->state == WORKER_IDLE &&
        (worker->spare || pool->settings.max_processes > pool->settings.processes))
        loop_timer_after(pool->loop, &worker->timer, pool->settings.idle);
}

static void pool_workers_on_result(struct worker *worker, struct helper_packet *result) {
    struct pool *pool;
    CAST_OBJ(pool, worker->pool, POOL_MAGIC);
    worker->state = WORKER_IDLE;
    pool_workers_take_result(pool, worker, result);
    pool_workers_settle(pool, worker);
}

static void pool_workers_on_lost(struct worker *worker) {
    worker_kill(worker);
    if (worker->job != NULL)
        job_finish(worker->job, HELPER_FAILED, NULL, "the helper died");
}

static void pool_workers_log_exit(const struct pool *pool, const struct worker *worker,
                                  int status) {
    if (WIFSIGNALED(status))
        log_warn("pool %s: a helper was ended by signal %d (%s) after %llu %s", pool->settings.name,
                 WTERMSIG(status), strsignal(WTERMSIG(status)), (unsigned long long)worker->served,
                 plural((int64_t)worker->served, "job", "jobs"));
    else if (WEXITSTATUS(status) != 0)
        log_warn("pool %s: a helper ended with status %d after %llu %s; its command is %s",
                 pool->settings.name, WEXITSTATUS(status), (unsigned long long)worker->served,
                 plural((int64_t)worker->served, "job", "jobs"), pool->settings.command[0]);
    else
        log_info("pool %s: a helper left", pool->settings.name);
}

void pool_workers_remove(struct pool *pool, struct worker *worker) {
    timer_cancel(&pool->loop->timers, &worker->timer);
    timer_cancel(&pool->loop->timers, &worker->job_timer);
    list_remove(&worker->link);
    output_close(&worker->output);
    pool->worker_count--;
    FREE_OBJ(worker);
}

static void pool_workers_on_exit(struct worker *worker, int status, struct helper_packet *result) {
    struct pool *pool;
    CAST_OBJ(pool, worker->pool, POOL_MAGIC);
    if (result != NULL)
        pool_workers_take_result(pool, worker, result);
    timer_cancel(&pool->loop->timers, &worker->job_timer);
    const char *client = worker->at_work ? worker->client : NULL;
    pool_workers_leave_work(pool, worker);
    pool_workers_log_exit(pool, worker, status);
    pool->counts.ended_cpu += worker->ended_cpu;
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool used_up = worker->overdue || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
    /* In these cases its end is expected, or its job is at fault. */
    bool was_to_go = worker->retired || worker->replace || used_up;
    if (!good && !was_to_go && !pool->retiring &&
        breaker_note_death(&pool->breaker, client, pool->loop->now) &&
        breaker_is_open_for_all(&pool->breaker))
        job_refuse_waiting(pool, REFUSAL_BREAKER);
    if (worker->job != NULL)
        job_finish(worker->job, HELPER_FAILED, NULL, "the helper died");
    if (worker->surplus || pool->retiring) {
        pool_workers_remove(pool, worker);
        return;
    }
    pool->counts.restarts++;
    bool settled = worker->served > 0 || pool->loop->now - worker->started > SETTLED_AFTER ||
                   good || was_to_go;
    worker->failures = settled ? 0 : worker->failures + 1;
    if (settled)
        pool_workers_start(pool, worker);
    else
        pool_workers_start_later(worker);
    pool_workers_replace_one(pool);
    dispatch_jobs(pool);
}

static const struct worker_callbacks pool_workers_callbacks = {
    pool_workers_on_result,
    pool_workers_on_lost,
    pool_workers_on_exit,
};

void pool_workers_add(struct pool *pool, bool spare) {
    struct worker *worker;
    ALLOC_OBJ(worker, WORKER_MAGIC);
    worker->spare = spare;
    worker->pool = pool;
    worker->loop = pool->loop;
    worker->callbacks = &pool_workers_callbacks;
    worker->fd = -1;
    event_init(&worker->event);
    output_init(&worker->output, &pool->share);
    timer_init(&worker->timer, on_worker_timer);
    timer_init(&worker->job_timer, on_job_deadline);
    list_append(&pool->workers, &worker->link);
    pool->worker_count++;
    pool_workers_start(pool, worker);
}
