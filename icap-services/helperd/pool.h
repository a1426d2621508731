/*
 * A pool: workers of one kind and the bounded queue before them.
 *
 *     struct pool *pool = pool_create(loop, &settings);        starts its processes
 *     ALLOC_OBJ(job, JOB_MAGIC); job->packet = ...; job->on_result = ...;
 *     pool_submit(pool, &job);             on_result is called exactly once, perhaps at once
 *     pool_cancel(&job);                   the client has gone: on_result is not called
 *     pool_renice(pool, 19, error, ...); pool_resize(pool, 4);
 *     pool_retire(pool);                   refuses what waits, lets jobs at work finish
 *     pool_free(&pool);                    when pool_is_quiet
 *
 * A job ends as HELPER_DONE or UNCHANGED by its helper; FAILED when the helper says so or dies;
 * TIMEOUT at its deadline, which counts from the submission: a helper at work on it is killed then;
 * REFUSED when there is no room, or when it could not be done before its deadline. A job is never
 * tried twice: what killed one helper would kill the next. One that found its helper gone waits for
 * another.
 *
 * Whose turn it is decides the queue (queue.h). Jobs that cost at most `small` are small ones. A
 * small job never waits for a large one to end: where large ones hold all helpers, one more is
 * started, the spare, which does small jobs alone and leaves after `idle`. Nor do small ones keep
 * large ones out: where both wait and no helper is at work on a large one, a large one is next.
 *
 * How long a job will take is known from the jobs of its lane before it (pool_pace). One that would
 * have to wait, and could then not be done in time, is refused at once, or when its turn comes: no
 * helper is killed for it, and no connection waits for nothing. What can start at once is always
 * tried, so a wrong guess mends itself.
 *
 * A helper that ends is started again; one that ends soon after its start, with a delay that
 * doubles from POOL_BACKOFF_FIRST to POOL_BACKOFF_LAST milliseconds.
 *
 * While jobs wait, processes are added up to max_processes; those beyond `processes` leave after a
 * time without work.
 *
 * When helpers die one after another, jobs are refused for a while (breaker.h). A helper that was
 * killed at the deadline of a job, or by the limit of its CPU time, has not died by a fault of its
 * own: that is the job's.
 */
#ifndef RETORT_HELPERD_POOL_H
#define RETORT_HELPERD_POOL_H

#include "base/list.h"
#include "event/loop.h"
#include "helperd/breaker.h"
#include "helperd/job.h"
#include "helperd/queue.h"
#include "helperd/refusal.h"
#include "helperd/settings.h"
#include "helperd/worker.h"

enum { POOL_BACKOFF_FIRST = 100, POOL_BACKOFF_LAST = 10000, POOL_LEAVE_TIME = 2000 };

struct pool_counts {
    uint64_t served, unchanged, failed, refused, timeouts, cancelled, restarts;
    uint64_t milliseconds; /* of those served or unchanged, from submission to result */
    uint64_t refusals[REFUSAL_COUNT];
    uint64_t ended_cpu; /* milliseconds of CPU time of processes that have ended */
};

struct lane_counts {
    uint64_t begun;   /* jobs that came to a helper */
    uint64_t waited;  /* milliseconds that they had waited for it */
    uint64_t longest; /* of these */
    unsigned at_work;
};

struct pool {
    unsigned magic;
#define POOL_MAGIC 0x506f6f6cu
    struct list_link link; /* in the supervisor's list */
    struct loop *loop;
    struct pool_settings settings; /* a copy of its own */
    struct list_link workers;
    unsigned worker_count;
    struct queue queue;
    uint64_t next_id;
    bool retiring;
    struct breaker breaker;
    struct pool_counts counts;
    struct lane_counts lanes[LANE_COUNT];
    double pace[LANE_COUNT];   /* milliseconds for a unit of cost, as of late; 0: not known */
    struct output_share share; /* of the log, for all its helpers */
};

struct pool *pool_create(struct loop *loop, const struct pool_settings *settings);
void pool_free(struct pool **poolp);
void pool_submit(struct pool *pool, struct job **jobp);
void pool_cancel(struct job **jobp);
/* Takes over sizes, limits and the command of a new configuration. */
void pool_reconfigure(struct pool *pool, const struct pool_settings *settings);
bool pool_renice(struct pool *pool, int nice, char *error, size_t error_size);
void pool_resize(struct pool *pool, unsigned processes);
void pool_retire(struct pool *pool);
bool pool_is_quiet(const struct pool *pool);
/* Milliseconds of CPU time, of all its processes so far. */
uint64_t pool_cpu(const struct pool *pool);
/* The worker with that process, NULL when it is of another pool. */
struct worker *pool_find(struct pool *pool, pid_t pid);

#endif
