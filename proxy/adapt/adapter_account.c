#include "adapt/adapter_account.h"

#include <time.h>

const struct adapter_account_description adapter_account_numbers[] = {
#define ACCOUNT(name, help) {#name, help, offsetof(struct adapter_account, name)},
#include "adapt/adapter_account.def"
#undef ACCOUNT
    {NULL, NULL, 0},
};

const struct adapter_account_description adapter_account_times[] = {
    {"queue_seconds", "Seconds that requests waited for a connection or for OPTIONS.",
     offsetof(struct adapter_account, queue)},
    {"verdict_seconds", "Seconds from the request to the verdict.",
     offsetof(struct adapter_account, to_verdict)},
    {"last_byte_seconds", "Seconds from the request to the last byte of the answer.",
     offsetof(struct adapter_account, to_last_byte)},
    {NULL, NULL, 0},
};

void adapter_times_add(struct adapter_times *times, uint64_t microseconds) {
    unsigned at = 0;
    while (at + 1 < ADAPTER_TIMES && microseconds >= (uint64_t)ADAPTER_TIMES_FIRST << at)
        at++;
    times->below[at]++;
    times->count++;
    times->sum += microseconds;
}

uint64_t adapter_times_quantile(const struct adapter_times *times, double share) {
    uint64_t passed = 0;
    for (unsigned i = 0; i < ADAPTER_TIMES; i++) {
        passed += times->below[i];
        if (passed > 0 && (double)passed >= share * (double)times->count)
            return (uint64_t)ADAPTER_TIMES_FIRST << i;
    }
    return 0;
}

void adapter_account_add(struct adapter_account *sum, const struct adapter_account *account) {
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)account;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}
