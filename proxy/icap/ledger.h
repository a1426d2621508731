/*
 * A ledger: the accounts of a worker's ICAP services by their names, over reloads of the settings.
 * A service that comes with new settings goes on where the one of its name was; transactions that
 * began with the old one are still counted.
 *
 *     icap_ledger_open(&ledger, service->settings->name, &service->entry, &service->account);
 *     icap_ledger_sum(ledger, "gray", &sum);        those that are gone and those that are open
 *     icap_ledger_close(&service->entry);           adds it to those that are gone
 *     icap_ledger_free(&ledger);                    all are closed
 *
 * It has a page for each name that ever was in the settings.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ICAP_LEDGER_H
#define RETORT_ICAP_LEDGER_H

#include "base/list.h"
#include "icap/account.h"

struct icap_ledger_page;

struct icap_ledger {
    struct icap_ledger_page *pages;
};

/* An account that is open, in its service. */
struct icap_ledger_entry {
    struct list_link link;
    struct icap_ledger_page *page; /* NULL: of no ledger */
    const struct icap_account *account;
};

/* ledger NULL: it is in none. */
void icap_ledger_open(struct icap_ledger *ledger, const char *name, struct icap_ledger_entry *entry,
                      const struct icap_account *account);
void icap_ledger_close(struct icap_ledger_entry *entry);
void icap_ledger_sum(const struct icap_ledger *ledger, const char *name, struct icap_account *sum);
void icap_ledger_free(struct icap_ledger **ledgerp);

#endif
