/*
 * The sampler: a thread that looks at the counters of all workers every few seconds and adds what has
 * become of them to the history.
 *
 *     struct sampler *sampler = sampler_start(&calls, &lock, milliseconds);
 *     ... sampler_history(sampler) ...
 *     sampler_stop(&sampler);
 *
 * The workers are asked as for a page of the admin plane, and under the same mutex. When a worker
 * does not answer, no sample is taken; the next one is about the time since the last.
 *
 * Threads: start and stop from one; its own thread calls calls->report.
 */
#ifndef RETORT_ADMIN_SAMPLER_H
#define RETORT_ADMIN_SAMPLER_H

#include "admin/admin.h"
#include "admin/history.h"

#include <pthread.h>

struct sampler;

/* `turn` is held while workers are asked. NULL: its thread can't be started. */
struct sampler *sampler_start(const struct admin_calls *calls, pthread_mutex_t *turn,
                              uint64_t every);
void sampler_stop(struct sampler **samplerp);
/* Lives as long as the sampler. */
struct history *sampler_history(struct sampler *sampler);

#endif
