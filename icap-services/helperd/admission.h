/*
 * Decides whether a pool takes a new job or refuses it at once. pool_submit calls it.
 *
 *     enum refusal refusal = admission_refusal(pool, job);
 *     if (refusal != REFUSAL_NONE)
 *         job_refuse(job, refusal);
 *
 * Threads: one.
 */
#ifndef RETORT_HELPERD_ADMISSION_H
#define RETORT_HELPERD_ADMISSION_H

#include "helperd/pool.h"

/* The job has its place (lane, cost, client) and is not in the queue yet. If the queue is full, the
 * function makes room: it refuses a waiting job of a client that has more work there. */
enum refusal admission_refusal(struct pool *pool, struct job *job);

#endif
