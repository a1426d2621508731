/*
 * The history of the proxy's traffic: samples of the last hours in two rings of fixed memory. The
 * fine ring has HISTORY_FINE samples; the coarse ring has HISTORY_COARSE samples, each the sum of
 * HISTORY_GATHERED fine ones. With a sample every 10 seconds that is 6 hours, and 24 hours by
 * minutes.
 *
 *     struct history *history = history_new();
 *     history_add(history, &sample, &times);               the sampler, for each step
 *     count = history_read(history, false, after, samples, HISTORY_MOST);
 *     history_free(&history);
 *
 * A sample that could not be taken leaves a gap, and the next one is about a longer time: `lasted`
 * says how long. history.def names the values.
 *
 * Units: milliseconds; the durations of requests in microseconds. Threads: any; a mutex guards it.
 */
#ifndef RETORT_ADMIN_HISTORY_H
#define RETORT_ADMIN_HISTORY_H

#include "admin/admin.h"
#include "admin/page.h"
#include "base/times.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    HISTORY_FINE = 2160,
    HISTORY_COARSE = 1440,
    HISTORY_MOST = HISTORY_FINE,
    HISTORY_GATHERED = 6,
};

struct history_sample {
    uint64_t at;                  /* since 1970, when it was taken */
    uint64_t lasted;              /* the time that it is about */
    uint64_t requests;            /* that ended in that time, tunnels too */
    uint64_t measured;            /* those of them whose time counts: all but tunnels */
    uint64_t mean, p50, p90, p99; /* of the durations of `measured` */
#define COUNTED(name, counter, help) uint64_t name;
#define LEVEL(name, counter, help)   uint64_t name;
#include "admin/history.def"
#undef COUNTED
#undef LEVEL
};

struct history;

struct history *history_new(void);
void history_free(struct history **historyp);
/* `times`: the durations of the requests of this sample; sets measured, mean and the quantiles. */
void history_add(struct history *history, const struct history_sample *sample,
                 const struct times *times);
/* Copies the samples that were taken later than `after`, the oldest first: where there are more than
 * `most`, the latest ones. Returns how many. */
size_t history_read(struct history *history, bool coarse, uint64_t after,
                    struct history_sample *samples, size_t most);

/*
 * GET /v1/history: samples are arrays, in the order of `names`; the first two numbers of each are the time
 * in milliseconds since 1970 and how many milliseconds it is about.
 *
 *     {"step": 10000, "now": ..., "names": ["at", "lasted", "requests", ...], "samples": [[...], ...]}
 */

void history_page_make(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request);

/*
 * The sampler: a thread that looks at the counters of all workers every few seconds and adds what has become
 * of them to the history. The workers are asked as for a page, and under the same mutex. When a worker does
 * not answer, no sample is taken; the next one is about the time since the last.
 *
 *     struct sampler *sampler = sampler_start(&calls, &lock, milliseconds);
 *     ... sampler_history(sampler) ...
 *     sampler_stop(&sampler);
 *
 * Threads: start and stop from one; its own thread calls calls->report.
 */

struct sampler;

/* `turn` is held while workers are asked. NULL: its thread can't be started. */
struct sampler *sampler_start(const struct admin_calls *calls, pthread_mutex_t *turn,
                              uint64_t every);
void sampler_stop(struct sampler **samplerp);
/* Lives as long as the sampler. */
struct history *sampler_history(struct sampler *sampler);

#endif
