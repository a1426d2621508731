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

#endif
