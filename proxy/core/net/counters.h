/*
 * Counters: what a worker has done since it started. Each worker has one struct of plain integers,
 * which only its own thread uses. The admin plane asks each worker for a copy by message, and adds
 * the copies up.
 *
 *     worker->counters.client_requests++;
 *
 * The table in counters.def names each counter, its kind and its help text once; /metrics and
 * `retortctl status` are printed from it.
 */
#ifndef RETORT_NET_COUNTERS_H
#define RETORT_NET_COUNTERS_H

#include "base/times.h"

#include <stddef.h>
#include <stdint.h>

struct counters {
#define COUNTER(name, kind, help) uint64_t name;
#include "net/counters.def"
#undef COUNTER
};

enum counter_kind { COUNTER_TOTAL, COUNTER_GAUGE };

struct counter_description {
    const char *name;
    enum counter_kind kind;
    const char *help;
};

/* The descriptions have the order of the members of struct counters. That struct can be read as an
 * array of COUNTER_COUNT integers. */
extern const struct counter_description counter_descriptions[];
enum { COUNTER_COUNT = sizeof(struct counters) / sizeof(uint64_t) };

/* The counter of that place in the table. */
uint64_t counters_value(const struct counters *counters, size_t which);
void counters_add(struct counters *sum, const struct counters *more);

/*
 * Durations: how long what a worker has done took, as histograms. As counters (net/counters.h),
 * each worker has one struct, which only its own thread uses, and the admin plane adds copies up.
 *
 *     times_add(&net->durations.disk_read_seconds, microseconds);
 *     durations_sum(&all, &net->durations);
 *
 * durations.def names each one with its help text, once.
 */

/* Of struct times only. */
struct durations {
#define DURATION(name, help) struct times name;
#include "net/durations.def"
#undef DURATION
};

struct duration_description {
    const char *name, *help;
};

/* In the order of the members of struct durations, which can be read as an array. */
extern const struct duration_description duration_descriptions[];
enum { DURATION_COUNT = sizeof(struct durations) / sizeof(struct times) };

void durations_sum(struct durations *sum, const struct durations *more);

#endif
