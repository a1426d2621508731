#include "disk/queue.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "disk/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The purges on a volume, and the age of the records that they concern. There are two areas,
 * each with a copy (its twin), so a damaged sector does not lose purges. The area in use begins
 * with all purges that were in force when it was begun. Further sectors are appended. When the
 * area is full, the other one is written anew with a higher generation. It counts when all its
 * first sectors are there. A sector that was synced is good in both twins. A sector with zeros
 * or another generation in either twin was being written when the machine stopped, so no caller
 * has been told that it is stored. Anything else is damage: all records older than the next good
 * sector count as purged. */

enum {
    TWINS = 2,
    PIECE = 128, /* sectors that are read and written at once */
    ROOM_QUARTERS = 3,
};

enum sector_state { SECTOR_GOOD, SECTOR_NEVER_WRITTEN, SECTOR_DAMAGED };

static uint64_t sector_at(const struct volume *volume, unsigned area, unsigned twin, uint32_t at) {
    return volume->header.purges_at + (area * TWINS + twin) * volume->header.purges_size +
           (uint64_t)at * PURGE_SECTOR;
}

static uint32_t sector_count(const struct volume *volume) {
    return (uint32_t)(volume->header.purges_size / PURGE_SECTOR);
}

/* Writing. */

static bool volume_purges_put(struct volume *volume, const void *bytes, size_t length,
                              uint64_t offset) {
    ssize_t sent = pwrite(volume->fd, bytes, length, (off_t)offset);
    if (sent >= 0 && sent != (ssize_t)length)
        errno = EIO;
    return sent == (ssize_t)length;
}

static bool write_zeros(struct volume *volume) {
    static const char zeros[PIECE * PURGE_SECTOR];
    uint64_t at = volume->header.purges_at, end = at + PURGES_AREAS * volume->header.purges_size;
    for (; at < end; at += sizeof zeros) {
        size_t length = end - at < sizeof zeros ? (size_t)(end - at) : sizeof zeros;
        if (!volume_purges_put(volume, zeros, length, at))
            return false;
    }
    return true;
}

bool volume_blank_purges(struct volume *volume) {
    return fallocate(volume->fd, FALLOC_FL_ZERO_RANGE, (off_t)volume->header.purges_at,
                     (off_t)(PURGES_AREAS * volume->header.purges_size)) == 0 ||
           write_zeros(volume);
}

static bool volume_purges_fail(struct volume *volume) {
    volume->purges.broken = true;
    atomic_fetch_add_explicit(&volume->count.errors, 1, memory_order_relaxed);
    log_error("disk %s: a purge could not be written: %s; a restart would bring the purged objects "
              "back: purge again, or remove the file before a restart",
              volume->path, strerror(errno));
    return false;
}

/* Slots that are written into consecutive sectors. */
struct writing {
    struct purge_sector head; /* its slots mean nothing */
    const struct purge_slots *slots;
    size_t done;   /* slots */
    size_t inside; /* the next so many belong to texts */
};

static void fill_sector(struct writing *writing, struct purge_sector *sector) {
    *sector = writing->head;
    memset(sector->slots, 0, sizeof sector->slots);
    sector->at = writing->head.at++;
    sector->continued =
        (uint32_t)(writing->inside < PURGE_SECTOR_SLOTS ? writing->inside : PURGE_SECTOR_SLOTS);
    for (unsigned i = 0; i < PURGE_SECTOR_SLOTS && writing->done < writing->slots->count; i++) {
        sector->slots[i] = writing->slots->all[writing->done++];
        if (writing->inside > 0)
            writing->inside--;
        else
            writing->inside = purge_slot_texts(&sector->slots[i]);
    }
    purge_sector_seal(sector);
}

static uint32_t sectors_of(const struct purge_slots *slots) {
    return (uint32_t)((slots->count + PURGE_SECTOR_SLOTS - 1) / PURGE_SECTOR_SLOTS);
}

static bool write_sectors(struct volume *volume, unsigned area, struct writing *writing,
                          uint32_t count) {
    struct purge_sector sectors[PIECE];
    while (count > 0) {
        uint32_t at = writing->head.at, now = count < PIECE ? count : PIECE;
        for (uint32_t i = 0; i < now; i++)
            fill_sector(writing, &sectors[i]);
        for (unsigned twin = 0; twin < TWINS; twin++)
            if (!volume_purges_put(volume, sectors, now * sizeof *sectors,
                                   sector_at(volume, area, twin, at)))
                return volume_purges_fail(volume);
        count -= now;
    }
    return true;
}

static struct writing begin_writing(const struct volume *volume, const struct purge_slots *slots,
                                    uint64_t floor, uint64_t newest) {
    return (struct writing){
        .head =
            {
                .identity = volume->header.identity,
                .generation = volume->purges.generation,
                .floor = floor,
                .newest = newest,
                .at = volume->purges.used,
                .first = volume->purges.first,
            },
        .slots = slots,
    };
}

bool volume_append_purges(struct volume *volume, const struct purge_slots *slots, uint64_t floor,
                          uint64_t newest) {
    struct writing writing = begin_writing(volume, slots, floor, newest);
    uint32_t count = sectors_of(slots);
    if (volume->purges.broken || count > sector_count(volume) - volume->purges.used ||
        !write_sectors(volume, volume->purges.area, &writing, count))
        return false;
    volume->purges.used += count;
    return true;
}

size_t volume_purges_room(const struct volume *volume) {
    return (size_t)sector_count(volume) * ROOM_QUARTERS / 4 * PURGE_SECTOR_SLOTS;
}

bool volume_sync_purges(struct volume *volume) {
    return !volume->settings->sync || fdatasync(volume->fd) == 0 || volume_purges_fail(volume);
}

/* So that the damage is not found again. */
static bool clear_other_area(struct volume *volume) {
    static const struct purge_sector nothing;
    bool cleared = true;
    for (unsigned twin = 0; twin < TWINS && volume->purges.damaged; twin++)
        cleared = volume_purges_put(volume, &nothing, sizeof nothing,
                                    sector_at(volume, 1 - volume->purges.area, twin, 0)) &&
                  cleared;
    volume->purges.damaged = volume->purges.damaged && !cleared;
    return cleared || volume_purges_fail(volume);
}

/* The clock is part of a generation, because the generation of a damaged sector is unknown. */
static uint64_t next_generation(const struct volume *volume) {
    uint64_t now = clocks_microseconds(CLOCK_REALTIME), next = volume->purges.generation + 1;
    return now > next ? now : next;
}

bool volume_rewrite_purges(struct volume *volume, const struct purge_slots *slots, uint64_t floor,
                           uint64_t newest) {
    struct volume_purges before = volume->purges;
    uint32_t count = sectors_of(slots) == 0 ? 1 : sectors_of(slots);
    unsigned area = 1 - before.area;
    ASSERT(count <= sector_count(volume));
    volume->purges.generation = next_generation(volume);
    volume->purges.used = 0;
    volume->purges.first = count;
    struct writing writing = begin_writing(volume, slots, floor, newest);
    bool done = write_sectors(volume, area, &writing, count) && volume_sync_purges(volume);
    if (!done) {
        volume->purges.area = before.area; /* the next try is into the same one */
        return false;
    }
    volume->purges.area = area;
    volume->purges.used = count;
    volume->purges.broken = false;
    return clear_other_area(volume);
}

/* Reading. */

static bool volume_purges_is_zero(const struct purge_sector *sector) {
    static const struct purge_sector nothing;
    return memcmp(sector, &nothing, sizeof nothing) == 0;
}

/* generation: 0: any. */
static enum sector_state volume_purges_state_of(const struct volume *volume,
                                                const struct purge_sector *sector, uint32_t at,
                                                uint64_t generation) {
    if (volume_purges_is_zero(sector))
        return SECTOR_NEVER_WRITTEN;
    if (!purge_sector_good(sector, volume->header.identity, at))
        return SECTOR_DAMAGED;
    return generation == 0 || sector->generation == generation ? SECTOR_GOOD : SECTOR_NEVER_WRITTEN;
}

/* A sector that can't be read counts as damaged. */
static void get(struct volume *volume, struct purge_sector *sectors, uint32_t count,
                uint64_t offset) {
    if (pread(volume->fd, sectors, count * sizeof *sectors, (off_t)offset) ==
        (ssize_t)(count * sizeof *sectors))
        return;
    memset(sectors, 0xff, count * sizeof *sectors);
    for (uint32_t i = 0; i < count; i++, offset += PURGE_SECTOR)
        if (pread(volume->fd, &sectors[i], sizeof *sectors, (off_t)offset) !=
            (ssize_t)sizeof *sectors)
            memset(&sectors[i], 0xff, sizeof *sectors);
}

struct scan {
    struct volume *volume;
    unsigned area;
    uint64_t generation;    /* 0: any */
    uint32_t first;         /* of its sectors: 0: not known yet */
    bool twin_damaged;      /* one twin of a pair was damaged */
    bool lost;              /* there was damage, and no good sector after it yet */
    bool hole;              /* one of the first sectors was never written */
    bool more;              /* there are good sectors after the first ones */
    bool damaged;           /* there was damage */
    struct purge_log *log;  /* NULL: only looked at */
    struct purge_slots run; /* purge numbers of consecutive sectors */
};

static void volume_purges_end_run(struct scan *scan) {
    if (scan->log != NULL)
        purge_log_read(scan->log, scan->run.all, scan->run.count);
    scan->run.count = 0;
}

static void see_good(struct scan *scan, const struct purge_sector *sector) {
    scan->first = sector->first;
    scan->more = scan->more || sector->at >= sector->first;
    if (scan->log == NULL)
        return;
    /* No lost purge is newer than this number. */
    purge_log_raise(scan->log, scan->lost ? sector->newest : sector->floor, sector->newest);
    scan->lost = false;
    uint32_t skipped = scan->run.count == 0 ? sector->continued : 0;
    purge_slots_append(&scan->run, sector->slots + skipped, PURGE_SECTOR_SLOTS - skipped);
}

static void see(struct scan *scan, const struct purge_sector *sector, enum sector_state state,
                uint32_t at) {
    if (state == SECTOR_GOOD) {
        see_good(scan, sector);
        return;
    }
    volume_purges_end_run(scan);
    scan->damaged = scan->damaged || state == SECTOR_DAMAGED;
    scan->lost = scan->lost || state == SECTOR_DAMAGED;
    scan->hole =
        scan->hole || (state == SECTOR_NEVER_WRITTEN && (at < scan->first || scan->first == 0));
}

/* Returns false at the end. */
static bool scan_piece(struct scan *scan, uint32_t at, uint32_t count) {
    struct purge_sector sectors[TWINS][PIECE];
    bool read_twin = false, anything = false;
    struct volume *volume = scan->volume;
    get(volume, sectors[0], count, sector_at(volume, scan->area, 0, at));
    for (uint32_t i = 0; i < count; i++) {
        const struct purge_sector *sector = &sectors[0][i];
        enum sector_state state = volume_purges_state_of(volume, sector, at + i, scan->generation);
        if (state == SECTOR_DAMAGED && !read_twin) {
            get(volume, sectors[1], count, sector_at(volume, scan->area, 1, at));
            read_twin = true;
        }
        if (state == SECTOR_DAMAGED) {
            sector = &sectors[1][i];
            state = volume_purges_state_of(volume, sector, at + i, scan->generation);
            scan->twin_damaged = scan->twin_damaged || state == SECTOR_GOOD;
        }
        anything = anything || state != SECTOR_NEVER_WRITTEN;
        see(scan, sector, state, at + i);
    }
    return anything;
}

static void scan_area(struct scan *scan) {
    uint32_t all = sector_count(scan->volume);
    for (uint32_t at = 0; at < all; at += PIECE)
        if (!scan_piece(scan, at, all - at < PIECE ? all - at : PIECE) && at >= scan->first)
            break;
    volume_purges_end_run(scan);
    purge_slots_release(&scan->run);
}

/* Returns true when all its first sectors are or were there. */
static bool is_complete(struct volume *volume, unsigned area, uint64_t generation) {
    struct scan scan = {.volume = volume, .area = area, .generation = generation};
    scan_area(&scan);
    return !scan.hole || scan.more;
}

/* Returns the generation of the first sector; 0: there is none. Returns false when it is
 * damaged. */
static bool read_generation(struct volume *volume, unsigned area, uint64_t *generation) {
    struct purge_sector sector;
    bool damaged = true;
    *generation = 0;
    for (unsigned twin = 0; twin < TWINS; twin++) {
        get(volume, &sector, 1, sector_at(volume, area, twin, 0));
        enum sector_state state = volume_purges_state_of(volume, &sector, 0, 0);
        damaged = damaged && state == SECTOR_DAMAGED;
        if (state == SECTOR_GOOD && sector.generation > *generation)
            *generation = sector.generation;
    }
    return !damaged;
}

static void read_area(struct volume *volume, uint64_t generation, struct purge_log *log,
                      bool *lost) {
    struct scan scan = {
        .volume = volume, .area = volume->purges.area, .generation = generation, .log = log};
    scan_area(&scan);
    *lost = *lost || scan.lost || (scan.hole && scan.more);
    if (scan.twin_damaged)
        log_warn("disk %s: one copy of the list of purges is damaged; the other copy is good",
                 volume->path);
    if (scan.damaged)
        atomic_fetch_add_explicit(&volume->count.corrupt, 1, memory_order_relaxed);
    if (scan.damaged && !*lost)
        log_error("disk %s: both copies of the list of purges are damaged: objects stored before "
                  "the purges after the damaged place count as purged; check the device",
                  volume->path);
}

/* All records that are older than now count as purged. */
static void count_as_purged(struct volume *volume, struct purge_log *log) {
    purge_log_lose(log);
    atomic_fetch_add_explicit(&volume->count.corrupt, 1, memory_order_relaxed);
    log_error("disk %s: both copies of the list of purges are damaged: all objects on the disk "
              "count as purged; check the device",
              volume->path);
}

void volume_read_purges(struct volume *volume, struct purge_log *log) {
    uint64_t generations[2];
    bool good[2];
    for (unsigned area = 0; area < 2; area++)
        good[area] = read_generation(volume, area, &generations[area]);
    unsigned newer = generations[1] > generations[0];
    uint64_t newest = generations[newer];
    if (newest != 0 && good[0] && good[1] && !is_complete(volume, newer, newest))
        newer = 1 - newer;
    bool lost = !good[0] || !good[1];
    volume->purges = (struct volume_purges){
        .generation = newest, .area = newer, .broken = true, .damaged = lost};
    if (generations[newer] != 0)
        read_area(volume, generations[newer], log, &lost);
    if (lost)
        count_as_purged(volume, log);
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
