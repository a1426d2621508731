/*
 * Who sees each transaction when it has ended, beside the access logs: the event stream, and services
 * (transaction/service_log.h).
 *
 *     struct entry_watcher *watcher = host->watcher;         NULL: nobody listens
 *     for (; watcher != NULL; watcher = watcher->next)
 *         watcher->on_entry(watcher, transaction, &entry);
 *
 * Called by the step LOG. Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_WATCHER_H
#define RETORT_TRANSACTION_WATCHER_H

#include "transaction/access_line.h"

struct transaction;

struct entry_watcher {
    bool asks_class;            /* it needs entry->subject */
    struct entry_watcher *next; /* who sees it then; NULL: nobody */
    /* The entry points to what lives until the call returns. */
    void (*on_entry)(struct entry_watcher *watcher, struct transaction *transaction,
                     const struct access_entry *entry);
};

#endif
