/*
 * A bucket: how much of a limit of so many units a second is used. This is the generic cell rate
 * algorithm: a bucket is one time, that at which all that was taken will have come back.
 *
 *     struct bucket_rate rate = bucket_rate_of(10, 1, 20);         10 a second, 20 at once
 *     struct bucket bucket = {0};
 *     if (!bucket_take(&bucket, &rate, now, &wait)) ...            another try in `wait` nanoseconds
 *
 * For a flow of bytes, the next ones are reserved instead, and sent when their time has come. So
 * those who share a bucket get their turns in the order in which they ask:
 *
 *     uint64_t cost = bucket_cost(bytes, rate), at = bucket_reserve(&bucket, cost, credit, now);
 *     ... at the time `at`, the bytes may flow ...
 *     bucket_give_back(&bucket, cost);                             they did not
 *
 * Units: nanoseconds of a clock that is never set back. Clocks of several threads may differ by a
 * little. Threads: values; who shares a bucket locks it.
 */
#ifndef RETORT_LIMITS_BUCKET_H
#define RETORT_LIMITS_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
    uint64_t full_at; /* what was taken is back at this time */
};

struct bucket_rate {
    uint64_t interval; /* after this time a unit is back; 0: there is no limit */
    uint64_t room;     /* in which all units come back */
};

/* `units` in each `seconds`; at most `burst` at once, which is at least 1. */
struct bucket_rate bucket_rate_of(double units, unsigned seconds, unsigned burst);

/* Takes a unit. False: there is none, and the next one is there in *wait. */
bool bucket_take(struct bucket *bucket, const struct bucket_rate *rate, uint64_t now,
                 uint64_t *wait);
/* The time in which so many bytes flow at the rate, in bytes a second. */
uint64_t bucket_cost(uint64_t bytes, uint64_t rate);
/* Takes the cost, now or later, and returns the time when it may be used. An idle bucket gives as
 * much as flows in `credit` at once. */
uint64_t bucket_reserve(struct bucket *bucket, uint64_t cost, uint64_t credit, uint64_t now);
/* What was taken was not used. */
static inline void bucket_give_back(struct bucket *bucket, uint64_t cost) {
    bucket->full_at -= cost < bucket->full_at ? cost : bucket->full_at;
}
/* Is all back? Then the bucket is like a new one. */
static inline bool bucket_is_full(const struct bucket *bucket, uint64_t now) {
    return bucket->full_at <= now;
}

#endif
