/*
 * A job of a pool, from its submission to its end.
 *
 *     ALLOC_OBJ(job, JOB_MAGIC); job->packet = ...; job->on_result = ...;
 *     pool_submit(pool, &job);                     the pool's from here on (helperd/pool.h)
 *     job_finish(job, HELPER_TIMEOUT, NULL, "the deadline passed in the queue");
 *     job_refuse(job, REFUSAL_QUEUE_FULL);
 *
 * Whoever ends a job has it counted, taken out of the queue and away from its worker, told to its
 * client and freed. Threads: one.
 */
#ifndef RETORT_HELPERD_JOB_H
#define RETORT_HELPERD_JOB_H

#include "event/timer.h"
#include "helperd/queue.h"
#include "helperd/refusal.h"
#include "service/helper_protocol.h"

struct pool;
struct worker;

struct job {
    unsigned magic;
#define JOB_MAGIC 0x4a6f6221u
    struct queue_place place;
    struct pool *pool;
    struct worker *worker; /* at work on it */
    struct timer timer;    /* the deadline while it waits */
    uint64_t submitted, begun, deadline;
    bool returned; /* a helper was gone before it got it */
    struct helper_packet packet;
    void *client;
    /* `result` is NULL where no helper gave one; `why` is a sentence then. The job is freed
     * afterwards. */
    void (*on_result)(struct job *job, enum helper_status status, struct helper_packet *result,
                      const char *why);
};

/* Ends the job: `result` and `why` as for on_result. */
void job_finish(struct job *job, enum helper_status status, struct helper_packet *result,
                const char *why);
/* The same with HELPER_REFUSED, counted by its reason. */
void job_refuse(struct job *job, enum refusal refusal);
/* Refuses all jobs of the pool that wait. */
void job_refuse_waiting(struct pool *pool, enum refusal refusal);

#endif
