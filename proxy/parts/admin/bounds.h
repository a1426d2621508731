/*
 * Which metric counts what an option refuses (bounds.def), so that no limit works in silence.
 *
 *     for (const struct bound *bound = bounds; bound->option != NULL; bound++)
 *         if (bound->refuses)
 *             ... counters_value(&counters, bound->counter) ...
 *
 * Threads: constants.
 */
#ifndef RETORT_ADMIN_BOUNDS_H
#define RETORT_ADMIN_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

struct bound {
    const char *option; /* "client.memory"; in two rows also something that is no option */
    bool refuses;       /* it is in retort_bound_reached_total */
    size_t counter;     /* then: its index in struct counters */
    const char *metric; /* without "retort_"; NULL: it has none, because of `why` */
    const char *why;
};

/* Ends with a row whose option is NULL. */
extern const struct bound bounds[];

#endif
