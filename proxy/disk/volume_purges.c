#include "disk/queue.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/stream.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The list of purges that stands on a volume, and how old what it concerns is. */

enum { TWINS = 2, PLACES_OF_PURGES = 2 * TWINS };

static uint64_t place_at(unsigned place) {
    return VOLUME_HEADER_SIZE + (uint64_t)place * PURGES_SIZE;
}

bool volume_blank_purges(struct volume *volume) {
    static const struct purges_header nothing;
    bool done = true;
    for (unsigned i = 0; i < PLACES_OF_PURGES; i++)
        done = done && pwrite(volume->fd, &nothing, sizeof nothing, (off_t)place_at(i)) ==
                           (ssize_t)sizeof nothing;
    return done;
}

/* The twins of a pair hold the same: when a bit turns in the one, the other is there. */
static ssize_t write_twins(struct volume *volume, uint64_t sequence, const struct iovec *pieces,
                           size_t length) {
    for (unsigned twin = 0; twin < TWINS; twin++) {
        uint64_t offset = place_at((unsigned)(sequence % 2) * TWINS + twin);
        ssize_t sent = pwritev(volume->fd, pieces, 2, (off_t)offset);
        if (sent != (ssize_t)length)
            return sent;
    }
    return volume->settings->sync && fdatasync(volume->fd) != 0 ? -1 : (ssize_t)length;
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
    size_t length = sizeof header + text.length;
    ssize_t sent = write_twins(volume, header.sequence, pieces, length);
    if (sent == (ssize_t)length) {
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

static bool read_place(struct volume *volume, unsigned place, struct purges_header *header,
                       char **text) {
    uint64_t offset = place_at(place);
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

/* Was never written to, by this volume. */
static bool is_blank(struct volume *volume, unsigned place) {
    struct purges_header header;
    if (pread(volume->fd, &header, sizeof header, (off_t)place_at(place)) != (ssize_t)sizeof header)
        return false;
    return header.magic == 0 && header.checksum == 0 && header.sequence == 0;
}

static uint64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A pair without a good twin may be the newest. A write that breaks off spoils one twin, so this is
 * damage: whatever was purged there, all that is older than now counts as purged. */
static void count_as_purged(struct volume *volume, uint64_t *floor, uint64_t *newest) {
    uint64_t now = microseconds();
    *newest = *newest < now ? now : *newest + 1;
    *floor = *newest;
    atomic_fetch_add_explicit(&volume->count.corrupt, 1, memory_order_relaxed);
    log_error("disk %s: a list of purges is damaged, and so is its twin: all that is stored there "
              "counts as purged; check the device",
              volume->path);
}

struct slice volume_read_purges(struct volume *volume, uint64_t *floor, uint64_t *newest) {
    struct purges_header headers[PLACES_OF_PURGES];
    char *texts[PLACES_OF_PURGES];
    bool good[PLACES_OF_PURGES], lost = false;
    int best = -1;
    for (unsigned i = 0; i < PLACES_OF_PURGES; i++) {
        good[i] = read_place(volume, i, &headers[i], &texts[i]);
        if (good[i] && (best < 0 || headers[i].sequence > headers[best].sequence))
            best = (int)i;
    }
    for (unsigned i = 0; i < PLACES_OF_PURGES; i += TWINS) {
        lost =
            lost || (!good[i] && !good[i + 1] && !(is_blank(volume, i) && is_blank(volume, i + 1)));
        if (good[i] != good[i + 1] && !is_blank(volume, good[i] ? i + 1 : i))
            log_warn("disk %s: a list of purges is damaged; its twin is good", volume->path);
    }
    *floor = *newest = 0;
    struct slice text = slice_make(NULL, 0);
    if (best >= 0) {
        volume->purges_sequence = headers[best].sequence;
        *floor = headers[best].floor;
        *newest = headers[best].newest;
        text = slice_make(texts[best], headers[best].text_length);
    }
    for (int i = 0; i < PLACES_OF_PURGES; i++)
        if (i != best)
            free(texts[i]);
    if (lost)
        count_as_purged(volume, floor, newest);
    return text;
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
