/*
 * The workers of a pool: started, replaced, given up when they hang, and started again when they
 * end.
 *
 *     pool_workers_add(pool, false);
 *     if (pool_workers_lasting(pool) > pool->settings.processes) ...
 *     pool_workers_replace_one(pool);              those marked worker->replace, one after another
 *     pool_workers_remove(pool, worker);           its process has ended, or was never started
 *
 * What a worker reports (helperd/worker.h) is dealt with here. Threads: one.
 */
#ifndef RETORT_HELPERD_POOL_WORKERS_H
#define RETORT_HELPERD_POOL_WORKERS_H

#include "helperd/pool.h"

/* Adds a worker and starts its process; `spare`: for small jobs alone. */
void pool_workers_add(struct pool *pool, bool spare);
void pool_workers_remove(struct pool *pool, struct worker *worker);
/* How many are not about to be removed, without the spare. */
unsigned pool_workers_lasting(const struct pool *pool);
/* Has one worker that is to be replaced leave, unless one is leaving already: so the pool goes on
 * working. */
void pool_workers_replace_one(struct pool *pool);

#endif
