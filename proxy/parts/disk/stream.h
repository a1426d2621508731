/*
 * The writer's part of writing a body as it arrives; see volume_stream_open in volume.h.
 *
 * A large body is written as it arrives into a unit of its own, and its front is written last. A
 * smaller body that will share a segment is gathered first, and appended when it is complete.
 * Bodies that are being gathered may take half of the queue, so slow ones leave room for complete
 * objects.
 *
 *     case JOB_STREAM_OPEN: stream_begin(volume, job); break;
 *     case JOB_STREAM_PUT:  done = stream_take(volume, job); break;     false: the job is kept
 *     case JOB_STREAM_END:  stream_finish(volume, job); break;
 *
 * Threads: the writer's, except where marked.
 */
#ifndef RETORT_DISK_STREAM_H
#define RETORT_DISK_STREAM_H

#include "cache/second_level.h"
#include "disk/queue.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * Sums of a body that comes in pieces of any size: one for each RECORD_CHUNK of it. One thread at a time.
 *
 *     uint64_t *sums = xcalloc(record_chunks(length) + 1, sizeof *sums);
 *     summing_begin(&summing, sums);
 *     summing_add(&summing, bytes, count);
 *     summing_end(&summing);                        or summing_release, without the last
 */

struct XXH3_state_s;

struct summing {
    struct XXH3_state_s *state;
    size_t in_chunk;
    uint64_t *sums;
    size_t chunk;
};

void summing_begin(struct summing *summing, uint64_t *sums);
void summing_add(struct summing *summing, const char *bytes, size_t length);
void summing_end(struct summing *summing);
/* May also be called for a zeroed struct that was never begun. */
void summing_release(struct summing *summing);
/* Sums a whole body at once. The caller frees the sums. */
uint64_t *summing_of(const struct iovec *pieces, int count, uint64_t length);

struct volume_stream {
    struct second_level_stream base;
    unsigned magic;
#define VOLUME_STREAM_MAGIC 0xd15c57e4u
    struct volume *volume;
    struct list_link link; /* under the volume's lock */
    _Atomic bool failed, cancelled;
    struct object *object; /* referenced */
    uint32_t variant;
    uint64_t events, body_length;
    uint64_t behind_since; /* since when it is behind, see volume_stream_is_behind; 0: it is not */
    /* the writer's */
    bool gathers;              /* it will share a segment, so its bytes wait until it is complete */
    struct list_link gathered; /* JOB_STREAM_PUT; they still count as queued */
    uint32_t first;            /* segment; VOLUME_NONE: none yet */
    size_t front_length;
    uint64_t written;
    uint64_t *sums;
    struct summing summing;
};

void stream_begin(struct volume *volume, struct volume_job *job);
/* False: the job is kept. */
bool stream_take(struct volume *volume, struct volume_job *job);
/* Publishes the record or drops it, and frees the stream. */
void stream_finish(struct volume *volume, struct volume_job *job);
void stream_free(struct volume_stream *stream);

#endif
