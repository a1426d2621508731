/*
 * Admission: may a pool take a job, or is it to be refused at once?
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

/* The job has its place (lane, cost, client) and is not in the queue yet. Where the queue is full,
 * this refuses a waiting job of a client that has more work there, to make room. */
enum refusal admission_refusal(struct pool *pool, struct job *job);

#endif
