/*
 * An account: what one ICAP service has done, in numbers (icap/account.def) and in times.
 *
 *     account->requests++;
 *     icap_times_add(&account->to_verdict, microseconds);
 *     icap_account_add(&sum, account);                       of several workers
 *
 * Times are counted by powers of two: times.below[i] are those below 64 us << i that are not below
 * 64 us << (i - 1); the last one takes all the rest.
 *
 * Threads: values; the worker's.
 */
#ifndef RETORT_ICAP_ACCOUNT_H
#define RETORT_ICAP_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

enum { ICAP_TIMES = 22, ICAP_TIMES_FIRST = 64 };

struct icap_times {
    uint64_t below[ICAP_TIMES];
    uint64_t count, sum; /* microseconds */
};

/* Of uint64_t only: they are added up by their order. */
struct icap_account {
#define ACCOUNT(name, help) uint64_t name;
#include "icap/account.def"
#undef ACCOUNT
    struct icap_times queue, to_verdict, to_last_byte;
};

struct icap_account_description {
    const char *name, *help;
    size_t at;
};
extern const struct icap_account_description icap_account_numbers[]; /* ends with name NULL */
extern const struct icap_account_description icap_account_times[];   /* likewise */

void icap_times_add(struct icap_times *times, uint64_t microseconds);
/* So many microseconds were not passed by the share of all, 0 to 1; an upper bound. 0: none. */
uint64_t icap_times_quantile(const struct icap_times *times, double share);
void icap_account_add(struct icap_account *sum, const struct icap_account *account);

#endif
