#include "transaction/snapshot.h"

#include "base/assert.h"

struct snapshot *snapshot_new(struct transaction_host *host, struct settings *settings,
                              struct origin_groups *origins) {
    struct snapshot *snapshot;
    ALLOC_OBJ(snapshot, SNAPSHOT_MAGIC);
    snapshot->references = 1;
    snapshot->host = host;
    snapshot->settings = settings_use(settings);
    snapshot->origins = origin_groups_reference(origins);
    PARTS_FOR_EACH (number, worker.take)
        snapshot->parts[number] = part_table[number]->worker.take(host, settings);
    return snapshot;
}

void snapshot_release(struct snapshot **snapshotp) {
    struct snapshot *snapshot = *snapshotp;
    *snapshotp = NULL;
    if (snapshot == NULL)
        return;
    CHECK_OBJ(snapshot, SNAPSHOT_MAGIC);
    if (--snapshot->references > 0)
        return;
    PARTS_FOR_EACH_BACK (number, worker.drop)
        part_table[number]->worker.drop(snapshot->host, snapshot->parts[number]);
    origin_groups_release(&snapshot->origins);
    settings_end_use(&snapshot->settings);
    FREE_OBJ(snapshot);
}
