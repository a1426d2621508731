/*
 * Purges by prefix, host, tag or expression, as far as they concern what is on disk: nothing is
 * searched when one comes, but each record is compared with those that are newer than it when it
 * is read. Each has a number above those before it, and is known again after a restart.
 *
 *     uint64_t number = purge_log_add(&log, &filter, PURGE_REMOVE);
 *     switch (purge_log_judge(&log, object, record_number)) ...
 *
 *     char *text = purge_log_write(&log, limit, &length);         to be kept on the volumes
 *     purge_log_read(&log, text, floor, newest);
 *
 * The bumps of services stand in it too: not one by one, since every record of what a service has
 * made says of which generation that is, but as how many there have been.
 *
 * Purges that are older than all records go (purge_log_forget). Where their text would grow past
 * its limit, the oldest go too, and what they might have concerned counts as purged: the floor
 * rises.
 *
 * Threads: any.
 */
#ifndef RETORT_DISK_PURGE_LOG_H
#define RETORT_DISK_PURGE_LOG_H

#include "base/list.h"
#include "cache/purge.h"

enum { PURGE_LOG_SERVICES = 512 }; /* whose generations are kept */

struct service_generation {
    uint64_t service, generation;
};

struct purge_log {
    pthread_rwlock_t lock;
    struct list_link purges; /* oldest first */
    unsigned service_count;
    struct service_generation services[PURGE_LOG_SERVICES]; /* bumped last stands last */
    _Atomic uint64_t newest;
    uint64_t floor; /* the newest one forgotten: records with a smaller number are out of date */
};

void purge_log_init(struct purge_log *log);
void purge_log_release(struct purge_log *log);
uint64_t purge_log_add(struct purge_log *log, const struct object_filter *filter,
                       enum purge_action action);
enum purge_action purge_log_judge(struct purge_log *log, const struct object *object,
                                  uint64_t number);
void purge_log_keep_generation(struct purge_log *log, uint64_t service, uint64_t generation);
/* 0: none */
uint64_t purge_log_kept_generation(struct purge_log *log, uint64_t service);
/* Purges up to this number concern nothing any more. */
void purge_log_forget(struct purge_log *log, uint64_t oldest);
/* All of them as text of at most `limit` bytes, which the caller frees. */
char *purge_log_write(struct purge_log *log, size_t limit, size_t *length);
/* Adds those that are not known. */
void purge_log_read(struct purge_log *log, struct slice text, uint64_t floor, uint64_t newest);

static inline uint64_t purge_log_newest(const struct purge_log *log) {
    return atomic_load_explicit(&log->newest, memory_order_acquire);
}

#endif
