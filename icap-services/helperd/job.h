/*
 * A job of a pool, from its submission to its end.
 *
 *     ALLOC_OBJ(job, JOB_MAGIC); job->packet = ...; job->on_result = ...;
 *     pool_submit(pool, &job);                     the pool's from here on (helperd/pool.h)
 *     job_finish(job, HELPER_TIMEOUT, NULL, "the deadline passed in the queue");
 *     job_refuse(job, REFUSAL_QUEUE_FULL);
 *
 * Both functions that end a job also count it, take it out of the queue and away from its worker,
 * tell its client, and free it. Threads: one.
 */
#ifndef RETORT_HELPERD_JOB_H
#define RETORT_HELPERD_JOB_H

#include "event/timer.h"
#include "helperd/queue.h"
#include "service/helper_protocol.h"

struct pool;
struct worker;

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

#endif
