#include "base/times.h"

void times_sum(struct times *sum, const struct times *more) {
    for (unsigned i = 0; i < TIMES_COUNT; i++)
        sum->below[i] += more->below[i];
    sum->count += more->count;
    sum->sum += more->sum;
}

uint64_t times_quantile(const struct times *times, double share) {
    uint64_t passed = 0;
    for (unsigned i = 0; i < TIMES_COUNT; i++) {
        passed += times->below[i];
        if (passed > 0 && (double)passed >= share * (double)times->count)
            return (uint64_t)TIMES_FIRST << i;
    }
    return 0;
}
