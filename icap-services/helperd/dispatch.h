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
/* An idle worker that may do a job of that lane now; NULL: there is none. */
struct worker *dispatch_idle_worker(struct pool *pool, enum lane lane);
/* Do large jobs hold the workers that a small one would need, and is there no spare yet? */
bool dispatch_wants_spare(const struct pool *pool);
/* Milliseconds until the job's deadline. */
uint64_t dispatch_time_left(const struct pool *pool, const struct job *job);
/* Milliseconds that one worker needs for so much work of a lane; 0: not known. */
double dispatch_expected_time(const struct pool *pool, enum lane lane, uint64_t cost);

#endif
