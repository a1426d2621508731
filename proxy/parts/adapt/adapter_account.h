/*
 * An account: what one service has done, in numbers (adapt/adapter_account.def) and in times.
 *
 *     account->requests++;
 *     times_add(&account->to_verdict, microseconds);
 *     adapter_account_add(&sum, account);                    of several workers
 *
 * Threads: values; the worker's.
 */
#ifndef RETORT_ADAPT_ADAPTER_ACCOUNT_H
#define RETORT_ADAPT_ADAPTER_ACCOUNT_H

#include "base/times.h"

#include <stddef.h>
#include <stdint.h>

/* Of uint64_t only: they are added up by their order. */
struct adapter_account {
#define ACCOUNT(name, help) uint64_t name;
#include "adapt/adapter_account.def"
#undef ACCOUNT
    struct times queue, to_verdict, to_last_byte;
};

struct adapter_account_description {
    const char *name, *help;
    size_t at;
};
extern const struct adapter_account_description adapter_account_numbers[]; /* ends with name NULL */
extern const struct adapter_account_description adapter_account_times[];   /* likewise */

void adapter_account_add(struct adapter_account *sum, const struct adapter_account *account);

#endif
