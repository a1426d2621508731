#include "disk/segment.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/lending.h"
#include "disk/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECES_MAX = 1024, /* of one pwritev */
    FAILURES_MAX = 3,
    PAUSE = 10000,      /* milliseconds without a write after so many failures in a row */
    RESCUE_SHARE = 4,   /* this part of a segment may wait to be written again */
    RESCUE_RECORD = 16, /* larger records than this part of a segment are not */
    BEHIND_SHARE = 8,   /* this part of the ring may be taken while a segment is open */
    /* A record that is larger than a part of a segment gets a unit of its own. The part is a
     * quarter, because records that share a segment wait in the queue until they are complete;
     * it is half where a quarter is small. The unused space at the end of a segment is at most
     * this part, and at most half of a unit. */
    SHARED_SHARE = 4,
    SHARED_HALF = 4 << 20,
};

static void segment_count_units(_Atomic uint64_t *counter, uint64_t by) {
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* Logs one line when writing begins to fail, not one for each record. */
static void note_failure(struct volume *volume, int error) {
    segment_count_units(&volume->count.errors, 1);
    if (volume->failures++ == 0)
        log_error("disk %s: a write failed: %s; objects are not stored there until writing works "
                  "again: check the device and its free space",
                  volume->path, strerror(error));
    if (volume->failures >= FAILURES_MAX)
        volume->paused_until = volume_clock() + PAUSE;
}

static void note_success(struct volume *volume) {
    if (volume->failures > 0)
        log_info("disk %s: writing works again", volume->path);
    volume->failures = 0;
}

/* Takes `sent` bytes off the front; returns how many pieces are used up. */
static int skip_bytes(struct iovec *pieces, int left, size_t sent) {
    int done = 0;
    while (done < left && sent >= pieces[done].iov_len)
        sent -= pieces[done++].iov_len;
    if (sent > 0) {
        pieces[done].iov_base = (char *)pieces[done].iov_base + sent;
        pieces[done].iov_len -= sent;
    }
    return done;
}

static bool put_batch(struct volume *volume, struct iovec *batch, int left, uint64_t *offset) {
    while (left > 0) {
        ssize_t sent = pwritev(volume->fd, batch, left, (off_t)*offset);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0) {
            note_failure(volume, sent == 0 ? EIO : errno);
            return false;
        }
        volume->unsynced = true;
        *offset += (uint64_t)sent;
        segment_count_units(&volume->count.bytes_written, (uint64_t)sent);
        int done = skip_bytes(batch, left, (size_t)sent);
        batch += done;
        left -= done;
    }
    return true;
}

bool volume_put_bytes(struct volume *volume, const struct iovec *pieces, int piece_count,
                      uint64_t offset) {
    struct iovec batch[PIECES_MAX];
    while (piece_count > 0) {
        int some = piece_count < PIECES_MAX ? piece_count : PIECES_MAX;
        memcpy(batch, pieces, (size_t)some * sizeof *batch);
        if (!put_batch(volume, batch, some, &offset))
            return false;
        pieces += some;
        piece_count -= some;
    }
    note_success(volume);
    return true;
}

static bool put_block(struct volume *volume, const void *bytes, size_t length, uint64_t offset) {
    char block[RECORD_ALIGN] = {0};
    ASSERT(length <= sizeof block);
    memcpy(block, bytes, length);
    struct iovec piece = {block, sizeof block};
    return volume_put_bytes(volume, &piece, 1, offset);
}

/* Rescue. */

struct rescued {
    struct list_link link;
    uint64_t key, sequence;
    struct disk_place place;
    _Atomic bool forgotten;          /* set under the volume's lock */
    _Alignas(uint64_t) char bytes[]; /* place.blocks * RECORD_ALIGN */
};

static void segment_consider(void *arg, uint64_t key, const struct disk_place *place, bool marked) {
    struct volume *volume = arg;
    size_t length = (size_t)place->blocks * RECORD_ALIGN;
    if ((!marked && !volume->hooks.used(volume->hooks.arg, key)) ||
        length > volume->header.segment_size / RESCUE_RECORD ||
        volume->rescued_bytes + length > volume->header.segment_size / RESCUE_SHARE)
        return;
    struct rescued *rescued = malloc(sizeof *rescued + length);
    if (rescued == NULL ||
        !volume_read(volume, volume_offset(place->at), rescued->bytes, length, VOLUME_MAY_WAIT)) {
        free(rescued);
        return;
    }
    rescued->key = key;
    rescued->place = *place;
    rescued->sequence = volume->segments[place->segment].sequence;
    rescued->forgotten = false;
    pthread_mutex_lock(&volume->lock);
    bool there = disk_index_has_place(volume->index, key, place->at);
    if (there)
        list_append(&volume->rescued, &rescued->link);
    pthread_mutex_unlock(&volume->lock);
    if (there)
        volume->rescued_bytes += length;
    else
        free(rescued);
}

bool segment_forget_rescued(struct volume *volume, uint64_t key, uint32_t variant) {
    bool some = false;
    LIST_FOR_EACH_SAFE (link, next, &volume->rescued) {
        struct rescued *rescued = CONTAINER_OF(link, struct rescued, link);
        if (rescued->key != key ||
            (variant != DISK_ANY_VARIANT &&
             (rescued->place.variant & disk_variant_mask(variant)) != variant))
            continue;
        rescued->forgotten = true;
        some = true;
    }
    return some;
}

void segment_hide_rescued(struct volume *volume, uint64_t key, uint32_t variant, bool itself) {
    LIST_FOR_EACH_SAFE (link, next, &volume->rescued) {
        struct rescued *rescued = CONTAINER_OF(link, struct rescued, link);
        uint32_t its = rescued->place.variant & ~DISK_RENEWAL;
        if (rescued->key == key &&
            (its == variant ? itself : disk_variant_names(its) != disk_variant_names(variant)))
            rescued->forgotten = true;
    }
}

/* Outdated records are not rescued, because their purge would be dropped before the new record. */
static bool is_worth_writing(struct volume *volume, const struct rescued *rescued,
                             struct record *record) {
    size_t length = (size_t)rescued->place.blocks * RECORD_ALIGN;
    return record_read(record, slice_make(rescued->bytes, length), volume->header.identity,
                       rescued->sequence) == RECORD_GOOD &&
           record->front_length + record->front.body_length <= length &&
           !volume->hooks.outdated(volume->hooks.arg, record);
}

static void write_again(struct volume *volume, const struct rescued *rescued) {
    struct record record;
    if (rescued->forgotten || !is_worth_writing(volume, rescued, &record))
        return;
    struct record_front front = record.front;
    struct iovec body = {(void *)(rescued->bytes + record.front_length), front.body_length};
    struct record_texts texts = {record.url, record.head, record.vary};
    uint32_t at = segment_append(volume, &front, &texts, record.sums, &body, 1);
    if (at == VOLUME_NONE)
        return;
    struct disk_place place = rescued->place;
    place.at = at;
    place.segment = at / segment_blocks(volume);
    pthread_mutex_lock(&volume->lock);
    if (!rescued->forgotten)
        disk_index_move(volume->index, rescued->key, rescued->place.at, &place);
    pthread_mutex_unlock(&volume->lock);
    segment_count_units(&volume->count.rewritten, 1);
}

static struct rescued *first_rescued(struct volume *volume) {
    struct list_link *link = list_first(&volume->rescued);
    return link == NULL ? NULL : CONTAINER_OF(link, struct rescued, link);
}

static void drop_rescued(struct volume *volume, struct rescued *rescued) {
    pthread_mutex_lock(&volume->lock);
    list_remove(&rescued->link);
    pthread_mutex_unlock(&volume->lock);
    volume->rescued_bytes -= (size_t)rescued->place.blocks * RECORD_ALIGN;
    free(rescued);
}

void segment_write_rescued(struct volume *volume) {
    struct rescued *rescued;
    while ((rescued = first_rescued(volume)) != NULL) {
        write_again(volume, rescued);
        drop_rescued(volume, rescued);
    }
}

void segment_release_rescued(struct volume *volume) {
    struct rescued *rescued;
    while ((rescued = first_rescued(volume)) != NULL)
        drop_rescued(volume, rescued);
}

/* Taking the oldest. */

/* The old content of the unit is not found any more, neither now nor after a restart. */
static void empty_unit(struct volume *volume, uint32_t first) {
    static const struct segment_header nothing;
    uint32_t run = volume->segments[first].run;
    bool cleared = put_block(volume, &nothing, sizeof nothing, segment_offset_of(volume, first));
    volume->segments[first].uncleared = !cleared;
    for (uint32_t i = 0; i < run; i++) {
        struct volume_segment *segment = &volume->segments[first + i];
        disk_index_drop_segment(volume->index, first + i);
        segment->sequence = 0;
        segment->run = 1;
        segment->used = 0;
        atomic_store(&segment->oldest, UINT64_MAX);
    }
    /* Readers identify the unit by its first segment, so the others must not be used before it. */
    volume->segments[first].run = run;
}

bool segment_detach_pages(int fd, uint64_t offset, uint64_t length) {
    /* The first call keeps the space; more file systems support the second. */
    return fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                     (off_t)length) == 0 ||
           fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                     (off_t)length) == 0;
}

/* No reader uses the unit any more, but its last bytes may still be on their way to a client. */
static bool detach(struct volume *volume, uint32_t first) {
    struct volume_segment *segment = &volume->segments[first];
    if (!atomic_load(&segment->sent) || volume->copies)
        return true;
    if (!segment_detach_pages(volume->fd, segment_offset_of(volume, first),
                              segment->run * volume->header.segment_size))
        return false;
    atomic_store(&segment->sent, false);
    return true;
}

/* By a process that has lent the volume, and still sends from it. */
static bool is_read_elsewhere(const struct volume *volume, uint32_t first) {
    return read_locks_of_others(volume, segment_offset_of(volume, first),
                                volume->segments[first].run * volume->header.segment_size);
}

/* Returns true when the unit may be used. Returns false when it is still being read and will be
 * empty at the next visit, or when its old content would be found again after a restart. */
static bool evacuate(struct volume *volume, uint32_t first) {
    struct volume_segment *segment = &volume->segments[first];
    if (segment->sequence != 0) {
        atomic_store(&segment->leaving, true);
        volume->hooks.leave(volume->hooks.arg, volume, first);
        disk_index_each_in(volume->index, first, segment_consider, volume);
        empty_unit(volume, first);
        segment_count_units(&volume->count.reclaimed, 1);
    } else if (segment->uncleared) {
        empty_unit(volume, first);
    } else if (atomic_load(&segment->pins) > 0) {
        /* Objects that were read while it was emptied have entered memory since. */
        volume->hooks.leave(volume->hooks.arg, volume, first);
    }
    if (segment->uncleared)
        return false;
    return atomic_load(&segment->pins) == 0 && !is_read_elsewhere(volume, first) &&
           detach(volume, first);
}

/* Returns the number of segments in the whole units from `first` on that contain at least
 * `wanted` segments. Returns 0 when there are not enough before the end of the volume or the
 * open segment. */
static uint32_t measure_units(const struct volume *volume, uint32_t first, uint32_t wanted) {
    uint32_t length = 0;
    while (length < wanted) {
        uint32_t at = first + length;
        if (at >= volume->header.segment_count || at == volume->open_segment ||
            volume->segments[at].streaming)
            return 0;
        length += volume->segments[at].run;
    }
    return length;
}

/* Checks that there is room for so many segments in a row; otherwise all units would be emptied
 * in vain. */
static bool segment_has_room(const struct volume *volume, uint32_t wanted) {
    for (uint32_t first = 0; first < volume->header.segment_count;
         first += volume->segments[first].run)
        if (measure_units(volume, first, wanted) > 0)
            return true;
    return false;
}

static bool evacuate_units(struct volume *volume, uint32_t first, uint32_t length) {
    bool usable = true;
    for (uint32_t at = 0; at < length; at += volume->segments[first + at].run)
        usable = evacuate(volume, first + at) && usable;
    return usable;
}

/* The hand never passes a unit without emptying it, because records that are removed later must
 * be reclaimed later. Returns VOLUME_NONE when no unit of the whole ring is usable. */
static uint32_t segment_find_units(struct volume *volume, uint32_t wanted, uint32_t *length) {
    uint32_t segment_count = volume->header.segment_count;
    if (!segment_has_room(volume, wanted))
        return VOLUME_NONE;
    for (uint32_t visited = 0; visited < 2 * segment_count;) {
        uint32_t first = volume->hand;
        *length = measure_units(volume, first, wanted);
        if (*length > 0 && evacuate_units(volume, first, *length))
            return first;
        if (*length == 0 && first != volume->open_segment && !volume->segments[first].streaming)
            evacuate(volume, first);
        uint32_t step = *length > 0 ? *length : volume->segments[first].run;
        visited += step;
        volume->hand = first + step < segment_count ? first + step : 0;
    }
    return VOLUME_NONE;
}

static bool begin_unit(struct volume *volume, uint32_t first, uint32_t run) {
    struct volume_segment *segment = &volume->segments[first];
    struct segment_header header = {
        .identity = volume->header.identity,
        .sequence = volume->next_sequence++,
        .run = run,
    };
    segment_header_seal(&header);
    for (uint32_t i = 1; i < run; i++)
        volume->segments[first + i].run = 0;
    segment->run = run;
    segment->used = SEGMENT_START / RECORD_ALIGN;
    segment->sequence = header.sequence;
    atomic_store(&segment->leaving, false);
    return put_block(volume, &header, sizeof header, segment_offset_of(volume, first));
}

uint32_t segment_take(struct volume *volume, uint32_t wanted) {
    uint32_t length;
    uint32_t first = segment_find_units(volume, wanted, &length);
    if (first == VOLUME_NONE)
        return VOLUME_NONE;
    for (uint32_t i = 0; i < length; i++)
        volume->segments[first + i].run = 1;
    volume->hand = first + wanted < volume->header.segment_count ? first + wanted : 0;
    if (begin_unit(volume, first, wanted))
        return first;
    segment_abandon(volume, first);
    return VOLUME_NONE;
}

/* Not more, because the bytes after it may be on their way to a client. */
bool segment_spoil_record(struct volume *volume, uint32_t at) {
    static const struct record_front nothing;
    struct iovec piece = {(void *)&nothing, sizeof nothing};
    return volume_put_bytes(volume, &piece, 1, volume_offset(at));
}

void segment_abandon(struct volume *volume, uint32_t first) {
    atomic_store(&volume->segments[first].leaving, true);
    empty_unit(volume, first);
}

void segment_give_back(struct volume *volume, uint32_t first) {
    uint32_t behind = first + volume->segments[first].run;
    segment_abandon(volume, first);
    if (volume->hand == (behind < volume->header.segment_count ? behind : 0) &&
        volume->failures == 0)
        volume->hand = first;
}

/* Sealing. */

bool segment_seal_unit(struct volume *volume, uint32_t first, const struct record_entry *entries,
                       uint32_t entry_count) {
    struct volume_segment *segment = &volume->segments[first];
    size_t length = entry_count * sizeof *entries;
    struct segment_seal sealed = {
        .identity = volume->header.identity,
        .sequence = segment->sequence,
        .contents_at = (uint64_t)segment->used * RECORD_ALIGN,
        .contents_sum = record_sum(entries, length),
        .oldest = atomic_load(&segment->oldest),
        .count = entry_count,
    };
    struct iovec piece = {(void *)entries, length};
    segment_seal_seal(&sealed);
    return (entry_count == 0 ||
            volume_put_bytes(volume, &piece, 1,
                             segment_offset_of(volume, first) + sealed.contents_at)) &&
           put_block(volume, &sealed, sizeof sealed,
                     segment_offset_of(volume, first) + RECORD_ALIGN);
}

void segment_seal_open(struct volume *volume) {
    if (volume->open_segment == VOLUME_NONE)
        return;
    if (segment_seal_unit(volume, volume->open_segment, volume->contents, volume->contents_count))
        queue_sync(volume);
    volume->open_segment = VOLUME_NONE;
    volume->contents_count = 0;
}

/* Appending. */

uint32_t segment_run_for(const struct volume *volume, uint64_t record_length) {
    uint64_t size = volume->header.segment_size, share = size / SHARED_SHARE;
    if (share < SHARED_HALF)
        share = size / 2 < SHARED_HALF ? size / 2 : SHARED_HALF;
    if (record_length <= share)
        return 0;
    uint64_t needed = record_length + RECORD_ALIGN + SEGMENT_START + sizeof(struct record_entry);
    return (uint32_t)((needed + size - 1) / size);
}

/* Units of large records have been taken since this segment was opened, so a record written
 * there now would be reclaimed with the oldest ones. */
static bool is_left_behind(const struct volume *volume) {
    uint32_t all = volume->header.segment_count;
    uint32_t since = (volume->hand + all - volume->open_segment) % all;
    return since > all / BEHIND_SHARE + 1;
}

static bool segment_fits(const struct volume *volume, uint64_t length) {
    if (volume->open_segment == VOLUME_NONE || is_left_behind(volume))
        return false;
    uint64_t end = volume->segments[volume->open_segment].used + record_blocks(length);
    uint64_t contents = (volume->contents_count + 1) * sizeof(struct record_entry);
    return end * RECORD_ALIGN + contents <= volume->header.segment_size;
}

static bool open_next(struct volume *volume) {
    segment_seal_open(volume);
    volume->open_segment = segment_take(volume, 1);
    return volume->open_segment != VOLUME_NONE;
}

static void segment_add_entry(struct volume *volume, const struct record_entry *entry) {
    if (volume->contents_count == volume->contents_capacity) {
        volume->contents_capacity = volume->contents_capacity * 2 + 256;
        volume->contents =
            xrealloc(volume->contents, volume->contents_capacity * sizeof *volume->contents);
    }
    volume->contents[volume->contents_count++] = *entry;
}

/* Writes front, body and padding in one call. */
static bool write_record(struct volume *volume, const struct record_front *front,
                         const struct record_texts *texts, const uint64_t *sums,
                         const struct iovec *body, int piece_count, uint64_t offset) {
    static const char padding[RECORD_ALIGN];
    size_t front_length = record_front_length(front);
    uint64_t length = front_length;
    struct iovec *pieces = xmalloc(((size_t)piece_count + 2) * sizeof *pieces);
    char *bytes = xmalloc(front_length);
    record_write(front, texts->url, texts->head, texts->vary, sums, bytes);
    int total = 0;
    pieces[total++] = (struct iovec){bytes, front_length};
    for (int i = 0; i < piece_count; i++)
        if (body[i].iov_len > 0) {
            pieces[total++] = body[i];
            length += body[i].iov_len;
        }
    size_t rest = (size_t)(record_blocks(length) * RECORD_ALIGN - length);
    if (rest > 0 && piece_count > 0)
        pieces[total++] = (struct iovec){(void *)padding, rest};
    bool good = volume_put_bytes(volume, pieces, total, offset);
    free(bytes);
    free(pieces);
    return good;
}

/* Fills in the front and the entry in the table of contents of a record that begins `at`. */
static struct record_entry place_record(struct volume *volume, uint32_t first, uint32_t at,
                                        struct record_front *front) {
    front->identity = volume->header.identity;
    front->sequence = volume->segments[first].sequence;
    bool again = front->serial != 0;
    front->serial = atomic_fetch_add(volume->hooks.next_serial, 1);
    if (!again)
        front->first_serial = (uint32_t)front->serial;
    uint64_t length = record_front_length(front) + front->body_length;
    return (struct record_entry){
        .key = front->key.low,
        .serial = front->serial,
        .variant = front->variant,
        .at = at,
        .blocks = (uint32_t)record_blocks(length),
        .kind = front->kind,
    };
}

static void note_written(struct volume *volume, uint32_t first, const struct record_entry *entry,
                         const struct record_front *front) {
    struct volume_segment *segment = &volume->segments[first];
    segment->used = entry->at + entry->blocks;
    if (front->kind != RECORD_REMOVAL && front->events < atomic_load(&segment->oldest))
        atomic_store(&segment->oldest, front->events);
    segment_count_units(&volume->count.writes, 1);
}

/* Writes a record that begins a unit of its own. Its body is given, or already written. */
static uint32_t write_alone(struct volume *volume, uint32_t first, struct record_front *front,
                            const struct record_texts *texts, const uint64_t *sums,
                            const struct iovec *body, int piece_count) {
    struct record_entry entry = place_record(volume, first, SEGMENT_START / RECORD_ALIGN, front);
    if (write_record(volume, front, texts, sums, body, piece_count,
                     segment_offset_of(volume, first) + SEGMENT_START)) {
        note_written(volume, first, &entry, front);
        if (segment_seal_unit(volume, first, &entry, 1))
            return first * segment_blocks(volume) + entry.at;
    }
    segment_abandon(volume, first);
    return VOLUME_NONE;
}

uint32_t segment_finish_alone(struct volume *volume, uint32_t first, struct record_front *front,
                              const struct record_texts *texts, const uint64_t *sums) {
    return write_alone(volume, first, front, texts, sums, NULL, 0);
}

uint32_t segment_append(struct volume *volume, struct record_front *front,
                        const struct record_texts *texts, const uint64_t *sums,
                        const struct iovec *body, int piece_count) {
    uint64_t length = record_front_length(front) + front->body_length;
    uint32_t run = segment_run_for(volume, length);
    if (run > 0) {
        uint32_t alone = segment_take(volume, run);
        return alone == VOLUME_NONE
                   ? VOLUME_NONE
                   : write_alone(volume, alone, front, texts, sums, body, piece_count);
    }
    if (!segment_fits(volume, length) && !open_next(volume))
        return VOLUME_NONE;
    uint32_t first = volume->open_segment, at = volume->segments[first].used;
    struct record_entry entry = place_record(volume, first, at, front);
    if (!write_record(volume, front, texts, sums, body, piece_count,
                      segment_offset_of(volume, first) + (uint64_t)at * RECORD_ALIGN)) {
        segment_seal_open(volume); /* a scan would stop at the broken record */
        return VOLUME_NONE;
    }
    note_written(volume, first, &entry, front);
    segment_add_entry(volume, &entry);
    return first * segment_blocks(volume) + at;
}
