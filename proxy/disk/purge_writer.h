/*
 * Purges on their way to all volumes. Those that come while others are being written go together
 * behind these, with one sync for all: so many calls at once cost hardly more than one.
 *
 *     struct purge_slots slots = {0};
 *     purge_log_add(&disk->purges, &filter, PURGE_REMOVE, &slots);
 *     if (!purge_writer_keep(&disk->writer, &slots)) ...           a restart may undo it
 *
 * The first caller writes for all that wait by then; there is no thread of its own.
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
    struct list_link waiting; /* calls whose slots nobody writes yet */
    bool busy;                /* a caller writes */
};

void purge_writer_init(struct purge_writer *writer, struct disk *disk);
void purge_writer_release(struct purge_writer *writer);
/* Returns when they stand on all volumes, and on the device where settings.sync says so. False:
 * they do not (counted and logged). Takes the slots, of what the log has been told before. */
bool purge_writer_keep(struct purge_writer *writer, struct purge_slots *slots);

#endif
