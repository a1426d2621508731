/*
 * A pool: workers of one kind and a bounded queue of jobs for them.
 *
 *     struct pool *pool = pool_create(loop, &settings);        starts its processes
 *     ALLOC_OBJ(job, JOB_MAGIC); job->packet = ...; job->on_result = ...;
 *     pool_submit(pool, &job);             on_result is called exactly once, perhaps at once
 *     pool_cancel(&job);                   the client has gone: on_result is not called
 *     pool_renice(pool, 19, error, ...); pool_resize(pool, 4);
 *     pool_retire(pool);                   refuses what waits, lets jobs at work finish
 *     pool_free(&pool);                    when pool_is_quiet
 *
 * A job ends in one of these ways (enum helper_status):
 *   HELPER_DONE, HELPER_UNCHANGED  its helper has answered so
 *   HELPER_FAILED                  its helper has answered so, or has died
 *   HELPER_TIMEOUT                 its deadline, which counts from the submission, has passed; a
 *                                  helper that works on the job is killed then
 *   HELPER_REFUSED                 there is no room, or no time to do it before its deadline
 * A job that killed one helper would kill the next one, so no job is tried twice. A job whose
 * helper was gone before it got the job waits for another helper.
 *
 * The queue decides whose turn it is (queue.h). A job that costs at most `small` is a small job. A
 * small job never waits for the end of a large one: when large jobs hold all helpers, the pool
 * starts one more helper, the spare. The spare does small jobs alone, and leaves after `idle`
 * milliseconds. Small jobs do not keep large ones out either: when both wait and no helper works on
 * a large job, a large job is next.
 *
 * The pool knows from earlier jobs of a lane how long a job of that lane takes (pool->pace). If a
 * job must wait, and would then be too late, the pool refuses it, at once or when its turn comes.
 * So no helper is killed for such a job, and no connection waits in vain. A job that can start at
 * once is always tried, so that a wrong estimate corrects itself.
 *
 * When a helper ends, the pool starts a new process for it. If the helper ended soon after its
 * start, the pool waits first: POOL_BACKOFF_FIRST milliseconds, then twice as long each time, up to
 * POOL_BACKOFF_LAST.
 *
 * While jobs wait, the pool adds processes, up to max_processes. Processes beyond `processes` leave
 * after a time without work.
 *
 * When helpers die one after another, jobs are refused for a while (breaker.h). A helper that was
 * killed at the deadline of a job, or by the limit of its CPU time, is not counted among them: the
 * job was at fault.
 *
 * Threads: one.
 */
#ifndef RETORT_HELPERD_POOL_H
#define RETORT_HELPERD_POOL_H

#include "base/list.h"
#include "base/times.h"
#include "event/loop.h"
#include "helperd/breaker.h"
#include "helperd/job.h"
#include "helperd/queue.h"
#include "helperd/settings.h"
#include "helperd/worker.h"

enum { POOL_BACKOFF_FIRST = 100, POOL_BACKOFF_LAST = 10000, POOL_LEAVE_TIME = 2000 };

struct pool_counts {
    uint64_t served, unchanged, failed, refused, timeouts, cancelled, restarts;
    uint64_t milliseconds; /* of jobs served or unchanged, from submission to result */
    uint64_t refusals[REFUSAL_COUNT];
    uint64_t ended_cpu; /* milliseconds of CPU time of processes that have ended */
};

struct lane_counts {
    uint64_t begun;   /* jobs that came to a helper */
    uint64_t waited;  /* milliseconds that all these jobs waited for it */
    uint64_t longest; /* milliseconds that one of them waited at most */
    unsigned at_work;
    struct times waiting; /* how long jobs waited for a helper, of those that came to one */
    struct times working; /* how long helpers worked on jobs, however that ended */
};

struct pool {
    unsigned magic;
#define POOL_MAGIC 0x506f6f6cu
    struct list_link link; /* in the supervisor's list */
    struct loop *loop;
    struct pool_settings settings; /* a copy of its own, which commands change */
    int configured_nice;           /* what the configuration says of it */
    unsigned configured_processes;
    struct list_link workers;
    unsigned worker_count;
    struct queue queue;
    uint64_t next_id;
    bool retiring;
    struct breaker breaker;
    struct pool_counts counts;
    struct lane_counts lanes[LANE_COUNT];
    double pace[LANE_COUNT];   /* milliseconds for a unit of cost, of late; 0: not known */
    struct output_share share; /* what its helpers may write into the log */
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
/* Milliseconds of CPU time that all its processes have used so far. */
uint64_t pool_cpu(const struct pool *pool);
/* The worker of that process; NULL when the pool has no such process. */
struct worker *pool_find(struct pool *pool, pid_t pid);

#endif
