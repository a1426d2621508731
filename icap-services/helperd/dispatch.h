/*
 * Decides which waiting job of a pool goes to which of its idle workers, and when the pool needs
 * one worker more. The rules stand in helperd/pool.h.
 *
 *     dispatch_jobs(pool);                 after a job came, or a worker has become idle
 *     dispatch_note_pace(pool, job);       the job is done: learn how long others will take
 *
 * Threads: one.
 */
#ifndef RETORT_HELPERD_DISPATCH_H
#define RETORT_HELPERD_DISPATCH_H

#include "helperd/pool.h"

/* Gives jobs to idle workers, as long as there are both. If jobs still wait and the pool may have
 * one more worker, starts one. */
void dispatch_jobs(struct pool *pool);
void dispatch_note_pace(struct pool *pool, const struct job *job);

/*
 * Decides whether a pool takes a new job or refuses it at once. pool_submit calls it.
 *
 *     enum refusal refusal = admission_refusal(pool, job);
 *     if (refusal != REFUSAL_NONE)
 *         job_refuse(job, refusal);
 *
 * Threads: one.
 */

/* The job has its place (lane, cost, client) and is not in the queue yet. If the queue is full, the
 * function makes room: it refuses a waiting job of a client that has more work there. */
enum refusal admission_refusal(struct pool *pool, struct job *job);

#endif
