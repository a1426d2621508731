/*
 * Who sees each transaction when it has ended, beside the access logs: the event stream.
 *
 *     struct entry_watcher *watcher = host->watcher;         NULL: nobody listens
 *     if (watcher != NULL)
 *         watcher->on_entry(watcher, &entry);
 *
 * Called by the step LOG. Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_WATCHER_H
#define RETORT_TRANSACTION_WATCHER_H

#include "transaction/access_line.h"

struct entry_watcher {
    bool asks_class; /* it needs entry->subject */
    /* The entry points to what lives until the call returns. */
    void (*on_entry)(struct entry_watcher *watcher, const struct access_entry *entry);
};

#endif
