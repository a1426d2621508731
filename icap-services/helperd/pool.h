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
 * When helpers die one after another, jobs are refused for a while. A helper that was killed at the
 * deadline of a job, or by the limit of its CPU time, is not counted among them: the job was at fault.
 *
 * Threads: one.
 */
#ifndef RETORT_HELPERD_POOL_H
#define RETORT_HELPERD_POOL_H

#include "base/list.h"
#include "base/times.h"
#include "event/loop.h"
#include "event/timer.h"
#include "helperd/queue.h"
#include "helperd/settings.h"
#include "helperd/worker.h"
#include "service/helper_protocol.h"

/*
 * A job of a pool, from its submission to its end. Functions that end a job also count it, take it out of the
 * queue and away from its worker, tell its client, and free it.
 */

struct pool;

/*
 * The reasons why a job is refused. A pool counts them, its client is told them, and
 * `retortctl helpers` shows them.
 *
 *     counts->refusals[REFUSAL_SHARE]++;
 *     refusal_text(REFUSAL_SHARE)       "share", as in JSON
 *     refusal_reason(REFUSAL_SHARE)     a sentence
 */
enum refusal {
    REFUSAL_NONE,
    REFUSAL_QUEUE_FULL, /* the queue is full, and no client has more in it than this one */
    REFUSAL_SHARE,      /* it had to give its place to a client that has less in the queue */
    REFUSAL_TOO_LATE,   /* it could not be done before its deadline */
    REFUSAL_BREAKER,
    REFUSAL_STOPPING,
    REFUSAL_COUNT
};

const char *refusal_text(enum refusal refusal);

struct job {
    unsigned magic;
#define JOB_MAGIC 0x4a6f6221u
    struct queue_place place;
    struct pool *pool;
    struct worker *worker;               /* the worker that does it; NULL: it waits */
    struct timer timer;                  /* the deadline while it waits */
    uint64_t submitted, begun, deadline; /* by the loop's clock */
    uint64_t came;                       /* microseconds of the monotonic clock */
    bool returned; /* it has been in the queue before: its helper was gone before it got the job */
    struct helper_packet packet;
    void *client;
    /* Called when the job ends. `result` is NULL when no helper gave a result; then `why` is a
     * sentence. The job is freed afterwards. */
    void (*on_result)(struct job *job, enum helper_status status, struct helper_packet *result,
                      const char *why);
};

/* Frees a job, and wipes its parameters, which may be a password. */
void job_free(struct job *job);
/* Ends the job; `result` and `why` are those of on_result. */
void job_finish(struct job *job, enum helper_status status, struct helper_packet *result,
                const char *why);
/* Ends the job with HELPER_REFUSED, and counts the reason. */
void job_refuse(struct job *job, enum refusal refusal);
/* Refuses all jobs of the pool that wait. */
void job_refuse_waiting(struct pool *pool, enum refusal refusal);

/*
 * The circuit breaker of a pool. When helpers die one after another, without a result between, it refuses jobs
 * for a while: such helpers do no work, and each start costs time.
 *
 * After `settings->breaker` deaths in a row the breaker opens, and jobs are refused. After
 * `settings->breaker_time` milliseconds one job is let through as a try. A result of the try closes the
 * breaker; another death of a helper begins the time anew. A try may also be cancelled, or never reach a
 * helper. Then the breaker learns nothing, and after the time it lets another job through.
 *
 * If all these helpers died at jobs of one known client, the breaker is open for that client alone. So no
 * client loses the helpers because another client has found a picture that kills them. `client` is a name as
 * queue_set_client makes it; empty: not known; NULL: the helper had no job.
 */

/* CLOSED: jobs are taken. OPEN: jobs are refused. TRYING: one job is under way as a try. */
enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_TRYING };

struct breaker {
    const struct pool_settings *settings;
    enum breaker_state state;
    unsigned deaths;                /* in a row, without a result */
    uint64_t ends;                  /* when one job may be tried; loop's milliseconds */
    uint64_t opened;                /* how often it has opened */
    char client[HELPER_CLIENT_MAX]; /* all deaths were at its jobs; empty: no such client */
};

void breaker_init(struct breaker *breaker, const struct pool_settings *settings);
/* True: the breaker is open now, for that client or for all clients. */
bool breaker_note_death(struct breaker *breaker, const char *client, uint64_t now);
void breaker_note_result(struct breaker *breaker);
bool breaker_admits(struct breaker *breaker, const char *client, uint64_t now);
/* Must a job of that client be refused that already waits in the queue? */
bool breaker_is_open_for(const struct breaker *breaker, const char *client);
/* Is the breaker open for all clients? */
bool breaker_is_open_for_all(const struct breaker *breaker);

const char *breaker_text(enum breaker_state state);

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
