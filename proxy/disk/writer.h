/*
 * The writer of a volume: the thread that takes jobs from the queue, and what it does with them.
 * volume_start and volume_stop (volume.h) begin and end it.
 *
 *     struct record_front front = writer_front(job, body_length);
 *     struct record_texts texts = writer_texts(job->object);
 *     at = segment_append(volume, &front, &texts, ...);
 *     writer_publish(volume, job, at, &front);
 *
 * Threads: the writer's; writer_stands_alone from any.
 */
#ifndef RETORT_DISK_WRITER_H
#define RETORT_DISK_WRITER_H

#include "disk/queue.h"
#include "disk/segment.h"

/* Has the record a unit of its own? */
static inline bool writer_stands_alone(const struct volume *volume,
                                       const struct disk_place *place) {
    return segment_run_for(volume, (uint64_t)place->blocks * RECORD_ALIGN) > 0;
}

/* After failures nothing is written for a while. */
bool writer_is_paused(const struct volume *volume);
struct record_front writer_front(const struct volume_job *job, uint64_t body_length);
/* Without its body; NULL: it makes no object. */
struct object *writer_bare_object(const struct record *record);
struct record_texts writer_texts(const struct object *object);
/* What has been written can be found, unless it was removed while it was written; what renewed the
 * one before does not count any more. */
void writer_publish(struct volume *volume, struct volume_job *job, uint32_t at,
                    const struct record_front *front);

#endif
