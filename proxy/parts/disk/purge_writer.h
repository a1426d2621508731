/*
 * Writes purges to all volumes. Purges that arrive while others are being written are written
 * together afterwards, with one sync, so many calls at once cost hardly more than one.
 *
 *     struct purge_slots slots = {0};
 *     purge_log_add(&disk->purges, &filter, PURGE_REMOVE, &slots);
 *     if (!purge_writer_keep(&disk->writer, &slots)) ...           a restart may undo it
 *
 * The first caller writes the purges of all waiting callers. There is no separate thread.
 *
 * Threads: any.
 */
#ifndef RETORT_DISK_PURGE_WRITER_H
#define RETORT_DISK_PURGE_WRITER_H

#include "base/list.h"
#include "disk/purge_slot.h"

#include <pthread.h>

struct disk;

struct purge_writer {
    struct disk *disk;
    pthread_mutex_t lock;
    pthread_cond_t written;
    struct list_link waiting; /* calls whose slots are not being written yet */
    bool busy;                /* a caller writes */
};

void purge_writer_init(struct purge_writer *writer, struct disk *disk);
void purge_writer_release(struct purge_writer *writer);
/* Returns when the slots are on all volumes, and on the device if settings.sync is set. Returns
 * false after a failure (counted and logged). Takes over the slots, whose purges are already in
 * the log. */
bool purge_writer_keep(struct purge_writer *writer, struct purge_slots *slots);

#endif
