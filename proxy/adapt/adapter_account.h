/*
 * An account: what one service has done, in numbers (adapt/adapter_account.def) and in times.
 *
 *     account->requests++;
 *     adapter_times_add(&account->to_verdict, microseconds);
 *     adapter_account_add(&sum, account);                    of several workers
 *
 * Times are counted by powers of two: times.below[i] counts those from 64 us << (i - 1) up to
 * 64 us << i; the last one counts all longer ones.
 *
 * Threads: values; the worker's.
 */
#ifndef RETORT_ADAPT_ADAPTER_ACCOUNT_H
#define RETORT_ADAPT_ADAPTER_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

enum { ADAPTER_TIMES = 22, ADAPTER_TIMES_FIRST = 64 };

struct adapter_times {
    uint64_t below[ADAPTER_TIMES];
    uint64_t count, sum; /* microseconds */
};

/* Of uint64_t only: they are added up by their order. */
struct adapter_account {
#define ACCOUNT(name, help) uint64_t name;
#include "adapt/adapter_account.def"
#undef ACCOUNT
    struct adapter_times queue, to_verdict, to_last_byte;
};

struct adapter_account_description {
    const char *name, *help;
    size_t at;
};
extern const struct adapter_account_description adapter_account_numbers[]; /* ends with name NULL */
extern const struct adapter_account_description adapter_account_times[];   /* likewise */

void adapter_times_add(struct adapter_times *times, uint64_t microseconds);
/* Microseconds that the given share (0 to 1) of all times did not exceed; an upper bound. 0: there
 * are no times. */
uint64_t adapter_times_quantile(const struct adapter_times *times, double share);
void adapter_account_add(struct adapter_account *sum, const struct adapter_account *account);

#endif
