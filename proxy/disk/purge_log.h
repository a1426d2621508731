/*
 * Purges by prefix, host, tag or expression, as far as they concern what is on disk: nothing is
 * searched when one comes, but each record is compared with those that are newer than it when it
 * is read. Each has a number above those before it, and is known again after a restart.
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
 * Of purges by the same filter the newest counts; simple filters are compared by their hashes, all
 * at once (cache/filter_table.h).
 *
 * The bumps of services stand in it too: not one by one, since every record of what a service has
 * made says of which generation that is, but as how many there have been.
 *
 * Purges that are older than all records go when it is summed up. Where what is left takes more
 * than there is room for, the oldest half goes too, and what it might have concerned counts as
 * purged: the floor rises.
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
    PURGE_LOG_SECONDS = 240,  /* purges are kept for, if there is room: see purge_log_sum_up */
};

struct service_generation {
    uint64_t service, generation;
};

struct purge_log {
    pthread_rwlock_t lock;
    struct filter_table purges;
    unsigned service_count;
    struct service_generation services[PURGE_LOG_SERVICES]; /* bumped last stands last */
    _Atomic uint64_t newest;
    /* The newest one forgotten: records with a smaller number are out of date. */
    _Atomic uint64_t floor;
};

void purge_log_init(struct purge_log *log);
void purge_log_release(struct purge_log *log);
/* slots: takes what is to be kept of it. */
uint64_t purge_log_add(struct purge_log *log, const struct object_filter *filter,
                       enum purge_action action, struct purge_slots *slots);
enum purge_action purge_log_judge(struct purge_log *log, const struct object *object,
                                  uint64_t number);
void purge_log_keep_generation(struct purge_log *log, uint64_t service, uint64_t generation);
/* 0: none */
uint64_t purge_log_kept_generation(struct purge_log *log, uint64_t service);
/* All that counts in at most that many slots. Purges up to `oldest` concern nothing that is there.
 * They go when they are PURGE_LOG_SECONDS old, so that what was on its way while they came may
 * still be compared with them; sooner where there is no room. */
void purge_log_sum_up(struct purge_log *log, uint64_t oldest, size_t most,
                      struct purge_slots *slots);
/* In any order; what is known already, or is no whole purge, is left out. */
void purge_log_read(struct purge_log *log, const struct purge_slot *slots, size_t count);
/* To those numbers at least. */
void purge_log_raise(struct purge_log *log, uint64_t floor, uint64_t newest);
/* Whatever was purged before now is unknown. */
void purge_log_lose(struct purge_log *log);

static inline uint64_t purge_log_newest(const struct purge_log *log) {
    return atomic_load_explicit(&log->newest, memory_order_acquire);
}

static inline uint64_t purge_log_floor(const struct purge_log *log) {
    return atomic_load_explicit(&log->floor, memory_order_acquire);
}

#endif
