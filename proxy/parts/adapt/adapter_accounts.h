/*
 * The accounts of a worker's services by the services' names, over reloads of the settings. After a
 * reload, the service of the same name continues the sums, and transactions that still use the old
 * service are counted as well.
 *
 *     adapter_accounts_open(accounts, settings->name, &service->entry, &service->account);
 *     adapter_accounts_sum(accounts, "gray", &sum);      of open and of closed accounts
 *     adapter_accounts_close(&service->entry);           its numbers stay in the sum
 *     adapter_accounts_free(&accounts);                  every account has been closed
 *
 * A name that was ever in the settings keeps its sum.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_ADAPTER_ACCOUNTS_H
#define RETORT_ADAPT_ADAPTER_ACCOUNTS_H

#include "adapt/adapter_account.h"
#include "base/list.h"

struct adapter_accounts_service;

struct adapter_accounts {
    struct adapter_accounts_service *services;
};

/* An open account: stands in its service. */
struct adapter_accounts_entry {
    struct list_link link;
    struct adapter_accounts_service *service; /* NULL: nobody sums it up */
    const struct adapter_account *account;
};

/* accounts NULL: nobody sums it up. */
void adapter_accounts_open(struct adapter_accounts *accounts, const char *name,
                           struct adapter_accounts_entry *entry,
                           const struct adapter_account *account);
void adapter_accounts_close(struct adapter_accounts_entry *entry);
void adapter_accounts_sum(const struct adapter_accounts *accounts, const char *name,
                          struct adapter_account *sum);
void adapter_accounts_free(struct adapter_accounts **accountsp);

#endif
