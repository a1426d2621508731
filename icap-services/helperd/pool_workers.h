/*
 * Manages the workers of a pool: starts them, replaces them, kills those that hang, and starts them
 * again when they end.
 *
 *     pool_workers_add(pool, false);
 *     if (pool_workers_lasting(pool) > pool->settings.processes) ...
 *     pool_workers_replace_one(pool);              one of those marked worker->replace
 *     pool_workers_remove(pool, worker);           its process has ended, or was never started
 *
 * The callbacks of the workers (helperd/worker.h) are here too. Threads: one.
 */
#ifndef RETORT_HELPERD_POOL_WORKERS_H
#define RETORT_HELPERD_POOL_WORKERS_H

#include "helperd/pool.h"

/* Adds a worker and starts its process. `spare`: it is for small jobs alone. */
void pool_workers_add(struct pool *pool, bool spare);
void pool_workers_remove(struct pool *pool, struct worker *worker);
/* The number of workers that will not be removed soon, without the spare. */
unsigned pool_workers_lasting(const struct pool *pool);
/* Tells one worker that is to be replaced to leave, unless one is leaving already. So the others go
 * on working. */
void pool_workers_replace_one(struct pool *pool);

#endif
