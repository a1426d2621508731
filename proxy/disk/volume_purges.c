#include "disk/queue.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/stream.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The list of purges that stands on a volume, and how old what it concerns is. */

static uint64_t purges_at(uint64_t sequence) {
    return VOLUME_HEADER_SIZE + sequence % 2 * PURGES_SIZE;
}

bool volume_write_purges(struct volume *volume, struct slice text, uint64_t floor,
                         uint64_t newest) {
    ASSERT(text.length <= PURGES_SIZE - sizeof(struct purges_header));
    struct purges_header header = {
        .identity = volume->header.identity,
        .sequence = volume->purges_sequence + 1,
        .floor = floor,
        .newest = newest,
    };
    purges_header_seal(&header, text);
    struct iovec pieces[] = {{&header, sizeof header}, {(void *)text.base, text.length}};
    uint64_t offset = purges_at(header.sequence);
    size_t length = sizeof header + text.length;
    ssize_t sent = pwritev(volume->fd, pieces, 2, (off_t)offset);
    if (sent == (ssize_t)length && (!volume->settings->sync || fdatasync(volume->fd) == 0)) {
        volume->purges_sequence = header.sequence; /* else the next one goes to the same place */
        return true;
    }
    atomic_fetch_add_explicit(&volume->count.errors, 1, memory_order_relaxed);
    log_error(
        "disk %s: a purge could not be written: %s; after a restart it would not count there: "
        "purge again, or remove the file before it",
        volume->path, strerror(sent < 0 ? errno : EIO));
    return false;
}

static bool read_purges_at(struct volume *volume, uint64_t sequence, struct purges_header *header,
                           char **text) {
    uint64_t offset = purges_at(sequence);
    *text = NULL;
    if (pread(volume->fd, header, sizeof *header, (off_t)offset) != (ssize_t)sizeof *header ||
        !purges_header_good(header, volume->header.identity))
        return false;
    *text = xmalloc(header->text_length + 1);
    ssize_t got = pread(volume->fd, *text, header->text_length, (off_t)(offset + sizeof *header));
    (*text)[header->text_length] = '\0';
    if (got == (ssize_t)header->text_length &&
        record_sum(*text, header->text_length) == header->text_sum)
        return true;
    free(*text);
    *text = NULL;
    return false;
}

struct slice volume_read_purges(struct volume *volume, uint64_t *floor, uint64_t *newest) {
    struct purges_header headers[2];
    char *texts[2];
    bool good[2];
    for (unsigned i = 0; i < 2; i++)
        good[i] = read_purges_at(volume, i, &headers[i], &texts[i]);
    unsigned best = good[1] && (!good[0] || headers[1].sequence > headers[0].sequence);
    free(texts[1 - best]);
    *floor = *newest = 0;
    if (!good[best])
        return slice_make(NULL, 0);
    volume->purges_sequence = headers[best].sequence;
    *floor = headers[best].floor;
    *newest = headers[best].newest;
    return slice_make(texts[best], headers[best].text_length);
}

uint64_t volume_oldest(struct volume *volume) {
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i < volume->header.segment_count; i++) {
        uint64_t one = atomic_load_explicit(&volume->segments[i].oldest, memory_order_relaxed);
        oldest = one < oldest ? one : oldest;
    }
    pthread_mutex_lock(&volume->lock);
    LIST_FOR_EACH_SAFE (link, next, &volume->jobs) {
        const struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        if (job->object != NULL && job->events < oldest)
            oldest = job->events;
    }
    if (volume->current != NULL && volume->current->object != NULL &&
        volume->current->events < oldest)
        oldest = volume->current->events;
    LIST_FOR_EACH_SAFE (link, next, &volume->streams) {
        const struct volume_stream *stream = CONTAINER_OF(link, struct volume_stream, link);
        oldest = stream->events < oldest ? stream->events : oldest;
    }
    if (!list_empty(&volume->rescued))
        oldest = 0; /* theirs are not known here */
    pthread_mutex_unlock(&volume->lock);
    return oldest;
}
