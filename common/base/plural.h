/*
 * Counted things in sentences for people: "1 entry cleared", "2 entries cleared".
 *
 *     printf("%lld %s cleared\n", count, plural(count, "entry", "entries"));
 *
 * Threads: any.
 */
#ifndef RETORT_BASE_PLURAL_H
#define RETORT_BASE_PLURAL_H

#include <stdint.h>

static inline const char *plural(int64_t count, const char *one, const char *many) {
    return count == 1 ? one : many;
}

#endif
