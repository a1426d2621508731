/*
 * A snapshot: the settings of a worker, with what is made of them for it. A transaction has the one that it began with, so
 * that a reload takes nothing from under it.
 *
 *     host->snapshot = snapshot_new(host, settings, origins);          the present one; a reload brings another
 *     transaction->snapshot = snapshot_reference(host->snapshot);
 *     snapshot_release(&transaction->snapshot);
 *
 * Threads: the worker's; the count of references is a plain integer.
 */
#ifndef RETORT_TRANSACTION_SNAPSHOT_H
#define RETORT_TRANSACTION_SNAPSHOT_H

#include "origin/group.h"
#include "part.h"
#include "settings/settings.h"

struct transaction_host;

struct snapshot {
    unsigned magic;
#define SNAPSHOT_MAGIC 0x54a95077u
    unsigned references;
    struct transaction_host *host;
    struct settings *settings;     /* used */
    struct origin_groups *origins; /* of these settings; referenced */
    void *parts[PART_COUNT];       /* what each part has made of them (part.h: worker.take) */
};

struct snapshot *snapshot_new(struct transaction_host *host, struct settings *settings,
                              struct origin_groups *origins);
static inline struct snapshot *snapshot_reference(struct snapshot *snapshot) {
    snapshot->references++;
    return snapshot;
}
void snapshot_release(struct snapshot **snapshotp);

#endif
