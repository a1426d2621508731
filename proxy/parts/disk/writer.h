/*
 * The writer of a volume: the thread that takes jobs from the queue and carries them out.
 * volume_start and volume_stop (volume.h) start and stop it.
 *
 *     struct record_front front = writer_front(job, body_length);
 *     struct record_texts texts = writer_texts(job->object);
 *     at = segment_append(volume, &front, &texts, ...);
 *     writer_publish(volume, job, at, &front);
 *
 * Threads: the writer's. writer_stands_alone may be called from any.
 */
#ifndef RETORT_DISK_WRITER_H
#define RETORT_DISK_WRITER_H

#include "disk/queue.h"
#include "disk/segment.h"

/* Returns true when the record has a unit of its own. */
static inline bool writer_stands_alone(const struct volume *volume,
                                       const struct disk_place *place) {
    return segment_run_for(volume, (uint64_t)place->blocks * RECORD_ALIGN) > 0;
}

/* Returns true while nothing is written after failures. */
bool writer_is_paused(const struct volume *volume);
struct record_front writer_front(const struct volume_job *job, uint64_t body_length);
/* Returns the object without its body, or NULL when the record is unusable. */
struct object *writer_bare_object(const struct record *record);
struct record_texts writer_texts(const struct object *object);
/* Publishes a written record, unless it was removed while it was written. Renewals of the
 * previous record do not count any more. */
void writer_publish(struct volume *volume, struct volume_job *job, uint32_t at,
                    const struct record_front *front);

/* Removes all variants, if there are any. */
void writer_remove_all(struct volume *volume, struct cache_key key);

#endif
