/*
 * Who sees each transaction when it has ended, beside the access logs: the event stream, and services
 * (parts/adapt/service_log.h).
 *
 *     struct entry_watcher *watcher = host->watcher;         NULL: nobody listens
 *     for (; watcher != NULL; watcher = watcher->next)
 *         watcher->on_entry(watcher, transaction, &journal);
 *
 * Who wants to see them joins the list, and may leave it again:
 *
 *     entry_watcher_join(&host->watcher, &tap->watcher);
 *     entry_watcher_leave(&host->watcher, &tap->watcher);
 *
 * Called by the step LOG.
 *
 * Who sees each step, too: host->step_watcher. While it wants to see transactions that begin, it gets each step of theirs
 * and their end. transaction_host_watch has to be called when it begins to want that. A transaction costs nothing for this
 * while nobody wants to.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_WATCHER_H
#define RETORT_TRANSACTION_WATCHER_H

#include "transaction/journal.h"
#include "transaction/step.h"

struct transaction;

struct entry_watcher {
    bool asks_class;            /* it needs journal->subject */
    struct entry_watcher *next; /* who sees it then; NULL: nobody */
    /* The journal points to what lives until the call returns. */
    void (*on_entry)(struct entry_watcher *watcher, struct transaction *transaction,
                     const struct journal *journal);
};

struct step_watcher {
    bool (*wants)(const struct step_watcher *watcher);
    /* A step has run, and goes to `next`: STEP_WAIT, it waits. */
    void (*on_step)(struct step_watcher *watcher, struct transaction *transaction, enum step next);
    /* Everything that the steps have begun has ended. */
    void (*on_end)(struct step_watcher *watcher, struct transaction *transaction);
};

/* Sees what ends behind those that are there; does nothing when it is one of them. */
static inline void entry_watcher_join(struct entry_watcher **list, struct entry_watcher *watcher) {
    while (*list != NULL && *list != watcher)
        list = &(*list)->next;
    *list = watcher;
}

/* Likewise when it is none of them. */
static inline void entry_watcher_leave(struct entry_watcher **list, struct entry_watcher *watcher) {
    while (*list != NULL && *list != watcher)
        list = &(*list)->next;
    if (*list == NULL)
        return;
    *list = watcher->next;
    watcher->next = NULL;
}

#endif
