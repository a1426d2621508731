/*
 * Durations: how long what a worker has done took, as histograms. As counters (net/counters.h),
 * each worker has one struct, which only its own thread uses, and the admin plane adds copies up.
 *
 *     times_add(&net->durations.disk_read_seconds, microseconds);
 *     durations_sum(&all, &net->durations);
 *
 * durations.def names each one with its help text, once.
 */
#ifndef RETORT_NET_DURATIONS_H
#define RETORT_NET_DURATIONS_H

#include "base/times.h"

#include <stddef.h>

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
