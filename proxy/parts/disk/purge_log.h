/*
 * Purges by prefix, host, tag or expression for objects on disk. A purge does not search the disk.
 * Instead, each record is compared with newer purges when it is read. Each purge has a larger
 * number than those before it, and survives a restart.
 *
 *     struct purge_slots slots = {0};
 *     uint64_t number = purge_log_add(&log, &filter, PURGE_REMOVE, &slots);
 *     ... the slots are appended to what stands on each volume ...
 *     switch (purge_log_judge(&log, object, record_number)) ...
 *
 *     purge_log_sum_up(&log, oldest, most, &slots);        all that still counts, to be kept anew
 *     purge_log_read(&log, slots.all, slots.count);        after a restart
 *     purge_log_raise(&log, floor, newest);
 *
 * Only the newest purge with the same filter is kept. Simple filters are compared by their hashes,
 * all at once (cache/filter_table.h).
 *
 * The log also contains bumps of services. It stores only their number, because each record with a
 * result of a service contains the generation of the result.
 *
 * Summing up removes purges that are older than all records. When the rest needs more room than
 * there is, the older half is removed too, and all records that these purges might have concerned
 * count as purged: the floor rises.
 *
 * Threads: any. Memory: 32 bytes for each different simple filter, see cache/filter_table.h.
 */
#ifndef RETORT_DISK_PURGE_LOG_H
#define RETORT_DISK_PURGE_LOG_H

#include "cache/filter_table.h"
#include "disk/purge_slot.h"

#include <pthread.h>

enum {
    PURGE_LOG_SERVICES = 512, /* whose generations are kept */
    PURGE_LOG_SECONDS = 240,  /* how long purges are kept if there is room; see purge_log_sum_up */
};

struct service_generation {
    uint64_t service, generation;
};

struct purge_log {
    pthread_rwlock_t lock;
    struct filter_table purges;
    unsigned service_count;
    struct service_generation services[PURGE_LOG_SERVICES]; /* the service that was bumped last
                                                             * is the last */
    _Atomic uint64_t newest;
    /* The newest purge that was dropped. Records with a smaller number are outdated. */
    _Atomic uint64_t floor;
};

void purge_log_init(struct purge_log *log);
void purge_log_release(struct purge_log *log);
/* `slots` receives the slots to store. */
uint64_t purge_log_add(struct purge_log *log, const struct object_filter *filter,
                       enum purge_action action, struct purge_slots *slots);
enum purge_action purge_log_judge(struct purge_log *log, const struct object *object,
                                  uint64_t number);
void purge_log_keep_generation(struct purge_log *log, uint64_t service, uint64_t generation);
/* 0: none */
uint64_t purge_log_kept_generation(struct purge_log *log, uint64_t service);
/* Writes all purges in force into at most `most` slots. Purges up to `oldest` concern no
 * existing record. They are dropped when they are PURGE_LOG_SECONDS old, so that requests in
 * progress can still be compared with them, or sooner when there is no room. */
void purge_log_sum_up(struct purge_log *log, uint64_t oldest, size_t most,
                      struct purge_slots *slots);
/* Reads slots in any order. Known purges and incomplete ones are skipped. */
void purge_log_read(struct purge_log *log, const struct purge_slot *slots, size_t count);
/* Raises both numbers to at least these values. */
void purge_log_raise(struct purge_log *log, uint64_t floor, uint64_t newest);
/* The purges before now are lost, so all older records count as purged. */
void purge_log_lose(struct purge_log *log);

static inline uint64_t purge_log_newest(const struct purge_log *log) {
    return atomic_load_explicit(&log->newest, memory_order_acquire);
}

static inline uint64_t purge_log_floor(const struct purge_log *log) {
    return atomic_load_explicit(&log->floor, memory_order_acquire);
}

#endif
