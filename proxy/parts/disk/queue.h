/*
 * The queue of jobs for the writer of a volume, in their order.
 *
 *     struct volume_job *job = queue_job(JOB_STORE, 0);
 *     if (!queue_add(volume, job, true)) ...             under the lock; false: too much waits
 *
 *     while ((job = queue_take(volume)) != NULL)         the writer
 *         queue_end(volume, job, do_it(job));
 *
 * A removal marks queued jobs of its key, and the one being written, as cancelled. The writer
 * checks the mark again, with the lock held, before it publishes the record.
 *
 * Threads: any, under the volume's lock where it says so.
 */
#ifndef RETORT_DISK_QUEUE_H
#define RETORT_DISK_QUEUE_H

#include "disk/volume.h"

#include <semaphore.h>

enum { PLACES = 64 /* limit for variants of a key that are examined */ };

enum job_kind {
    JOB_STORE,
    JOB_REMOVE,
    JOB_FLUSH,
    JOB_STREAM_OPEN,
    JOB_STREAM_PUT,
    JOB_STREAM_END,
    JOB_LEND,
    JOB_RETURN
};

struct volume_job {
    struct list_link link;
    enum job_kind kind;
    struct cache_key key;
    uint32_t variant;
    uint64_t events;
    struct object *object; /* owned; JOB_REMOVE: objects that it replaces are removed; NULL: none */
    sem_t *done;           /* JOB_FLUSH, JOB_LEND, JOB_RETURN */
    bool *synced;          /* JOB_FLUSH: set once the data is on the device; NULL: not needed */
    struct volume_stream *stream;
    _Atomic bool cancelled; /* set under the volume's lock */
    bool whole; /* JOB_STREAM_END: it arrived so; JOB_REMOVE: `bytes` name all that goes */
    size_t cost;
    size_t length; /* of bytes */
    char bytes[];  /* JOB_STREAM_PUT: of the body; JOB_REMOVE: struct removed */
};

/* A record that is removed. */
struct removed {
    uint64_t sequence;
    struct disk_place place;
};

/* NULL: no memory. */
struct volume_job *queue_job(enum job_kind kind, size_t length);
void queue_free_job(struct volume_job *job);
/* Call with the lock held. Only objects can be refused, because all other jobs are small or must
 * not be lost. An object that is larger than the whole queue is accepted when the queue is
 * empty. */
bool queue_add(struct volume *volume, struct volume_job *job, bool may_drop);
void queue_count_dropped(struct volume *volume);
/* A removal of these records, not yet queued. */
struct volume_job *queue_removal(struct volume *volume, const struct disk_place *places,
                                 unsigned count, uint32_t variant);
/* Syncs the device if a sync is due (volume.sync_due). */
void queue_sync_due(struct volume *volume);
/* Returns false when the sync failed (counted and logged). */
bool queue_sync(struct volume *volume);
/* Waits until the writer has done a job of this kind, after all earlier jobs. `synced`: see struct
 * volume_job. */
void queue_order(struct volume *volume, enum job_kind kind, bool *synced);
/* Returns the next job, which becomes `current`. Returns NULL when all jobs are done and the
 * volume is to be closed. */
struct volume_job *queue_take(struct volume *volume);
/* When `done` is false, the job is still in use and still counts. */
void queue_end(struct volume *volume, struct volume_job *job, bool done);

#endif
