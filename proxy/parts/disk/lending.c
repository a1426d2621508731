#include "disk/lending.h"

#include "base/assert.h"
#include "disk/queue.h"
#include "disk/segment.h"
#include "disk/stream.h"
#include "disk/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static struct flock range_of(short type, uint64_t offset, uint64_t length) {
    return (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = (off_t)offset,
        .l_len = (off_t)length,
    };
}

bool read_locks_set(const struct volume *volume) {
    for (uint32_t i = 0; i < volume->header.segment_count; i++) {
        const struct volume_segment *segment = &volume->segments[i];
        struct flock range = range_of(F_RDLCK, segment_offset_of(volume, i),
                                      segment->run * volume->header.segment_size);
        if (atomic_load(&segment->pins) > 0 && fcntl(volume->fd, F_OFD_SETLK, &range) != 0)
            return false;
    }
    return true;
}

void read_locks_drop(const struct volume *volume) {
    struct flock range = range_of(F_UNLCK, 0, 0);
    fcntl(volume->fd, F_OFD_SETLK, &range);
}

bool read_locks_of_others(const struct volume *volume, uint64_t offset, uint64_t length) {
    struct flock range = range_of(F_WRLCK, offset, length);
    return fcntl(volume->fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

/* Keys that were removed or replaced while the volume was lent, to be removed when it is back. */
enum { ABSENT_MOST = 65536 };

struct absent_keys {
    size_t count;
    bool more; /* there were too many */
    struct cache_key all[ABSENT_MOST];
};

/* The writer's part. */

/* Streams that have a unit of their own lose it. What else of them is gathered is freed when they
 * end. */
static struct volume_stream *next_unit(struct volume *volume) {
    struct volume_stream *found = NULL;
    pthread_mutex_lock(&volume->lock);
    LIST_FOR_EACH_SAFE (link, next, &volume->streams) {
        struct volume_stream *stream = CONTAINER_OF(link, struct volume_stream, link);
        atomic_store(&stream->failed, true);
        if (stream->first != VOLUME_NONE)
            found = stream;
    }
    pthread_mutex_unlock(&volume->lock);
    return found;
}

static void give_up_streams(struct volume *volume) {
    struct volume_stream *stream;
    while ((stream = next_unit(volume)) != NULL) {
        volume->segments[stream->first].streaming = false;
        segment_give_back(volume, stream->first);
        stream->first = VOLUME_NONE;
    }
}

void lending_lend(struct volume *volume) {
    if (volume->absent != NULL)
        return;
    segment_write_rescued(volume);
    give_up_streams(volume);
    segment_seal_open(volume);
    volume->absent = xcalloc(1, sizeof *volume->absent);
    for (uint32_t i = 0; i < volume->header.segment_count; i++)
        atomic_store(&volume->segments[i].leaving, true);
    for (uint32_t i = 0; i < volume->header.segment_count; i++) {
        volume->hooks.leave(volume->hooks.arg, volume, i);
        disk_index_drop_segment(volume->index, i);
    }
}

static void note_absent(struct volume *volume, struct cache_key key) {
    struct absent_keys *absent = volume->absent;
    if (absent->count < ABSENT_MOST)
        absent->all[absent->count++] = key;
    else
        absent->more = true;
}

void lending_skip(struct volume *volume, struct volume_job *job) {
    switch (job->kind) {
    case JOB_STORE:
    case JOB_REMOVE: note_absent(volume, job->key); break;
    case JOB_STREAM_OPEN: atomic_store(&job->stream->failed, true); break;
    case JOB_STREAM_PUT: break;
    case JOB_STREAM_END:
        note_absent(volume, job->key);
        stream_free(job->stream);
        break;
    case JOB_FLUSH:
    case JOB_LEND:
    case JOB_RETURN: sem_post(job->done); break;
    }
}

static void forget_segments(struct volume *volume) {
    for (uint32_t i = 0; i < volume->header.segment_count; i++) {
        struct volume_segment *segment = &volume->segments[i];
        atomic_store(&segment->sequence, 0);
        atomic_store(&segment->oldest, UINT64_MAX);
        segment->run = 1;
        segment->used = 0;
        segment->uncleared = false;
        atomic_store(&segment->sent, true); /* by the other process */
    }
    volume->open_segment = VOLUME_NONE;
    volume->contents_count = 0;
    volume->hand = 0;
}

void lending_return(struct volume *volume) {
    struct absent_keys *absent = volume->absent;
    if (absent == NULL)
        return;
    forget_segments(volume);
    volume_recover(volume);
    for (size_t i = 0; i < absent->count; i++)
        writer_remove_all(volume, absent->all[i]);
    if (absent->more)
        volume_note_lapse(volume);
    /* Only now can records be found: those that were removed are gone. */
    for (uint32_t i = 0; i < volume->header.segment_count; i++)
        if (atomic_load(&volume->segments[i].sequence) != 0)
            atomic_store(&volume->segments[i].leaving, false);
    volume->absent = NULL;
    free(absent);
}

/* The disk's part. */

/* No purge is being written when it returns, and none will be. */
static void stop_purges(struct disk *disk) {
    struct purge_writer *writer = &disk->writer;
    pthread_mutex_lock(&writer->lock);
    while (writer->busy)
        pthread_cond_wait(&writer->written, &writer->lock);
    for (size_t i = 0; i < disk->count; i++)
        atomic_store(&disk->volumes[i]->lent, true);
    pthread_mutex_unlock(&writer->lock);
}

/* What is pinned stays this process's. Nothing is pinned any more after the order to the writer. */
static bool lend_volume(struct volume *volume, char error[SETTINGS_ERROR]) {
    queue_order(volume, JOB_LEND, NULL);
    bool lent = read_locks_set(volume) && flock(volume->fd, LOCK_UN) == 0;
    if (!lent)
        snprintf(error, SETTINGS_ERROR,
                 "disk %s: it can not be passed to another process: %s; stop this retort and start "
                 "the other one",
                 volume->path, strerror(errno));
    return lent;
}

bool disk_lend(struct second_level *level, char *error) {
    struct disk *disk = disk_of(level);
    bool lent = true;
    stop_purges(disk);
    for (size_t i = 0; lent && i < disk->count; i++)
        lent = lend_volume(disk->volumes[i], error);
    return lent;
}

bool disk_take_back(struct second_level *level, char *error) {
    struct disk *disk = disk_of(level);
    bool all = true, some = false;
    for (size_t i = 0; i < disk->count; i++) {
        struct volume *volume = disk->volumes[i];
        if (!atomic_load(&volume->lent))
            continue;
        if (!volume_reclaim(volume, error)) {
            all = false;
            continue;
        }
        volume_read_purges(volume, &disk->purges);
        queue_order(volume, JOB_RETURN, NULL);
        atomic_store(&volume->lent, false);
        some = true;
    }
    /* Purges that came meanwhile are in the log, but on no volume yet. */
    struct purge_slots none = {0};
    if (some)
        purge_writer_keep(&disk->writer, &none);
    return all;
}
