#include "limits/bucket.h"

#define BUCKET_SECOND UINT64_C(1000000000)

struct bucket_rate bucket_rate_of(double units, unsigned seconds, unsigned burst) {
    double interval = (double)seconds * (double)BUCKET_SECOND / units;
    uint64_t whole = interval < 1 ? 1 : (uint64_t)interval;
    return (struct bucket_rate){.interval = whole, .room = whole * burst};
}

bool bucket_take(struct bucket *bucket, const struct bucket_rate *rate, uint64_t now,
                 uint64_t *wait) {
    uint64_t from = bucket->full_at > now ? bucket->full_at : now;
    uint64_t then = from + rate->interval;
    if (then - now > rate->room) {
        *wait = then - now - rate->room;
        return false;
    }
    bucket->full_at = then;
    *wait = 0;
    return true;
}

/* In floating point, because the product of both does not fit for long reservations. */
uint64_t bucket_cost(uint64_t bytes, uint64_t rate) {
    return (uint64_t)((double)bytes * (double)BUCKET_SECOND / (double)rate);
}

uint64_t bucket_reserve(struct bucket *bucket, uint64_t cost, uint64_t credit, uint64_t now) {
    uint64_t from = bucket->full_at > now ? bucket->full_at : now;
    bucket->full_at = from + cost;
    return from > credit ? from - credit : 0;
}
