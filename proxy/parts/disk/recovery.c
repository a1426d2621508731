#include "disk/volume.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/segment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Builds the index of a volume. Entries come from the tables of contents of sealed segments, and
 * from the records themselves in segments that were not sealed or whose table is damaged. Only
 * complete records count, and only if no later record replaced or removed them. */

struct unit {
    uint64_t sequence;
    uint32_t first, run;
    struct record_entry *entries; /* in the order of writing */
    uint32_t count;
};

struct recovery {
    struct volume *volume;
    struct unit *units; /* by sequence */
    uint32_t count;
    uint32_t scanned;    /* units without a good table of contents */
    struct unit **alone; /* those with one large record, by its serial number */
    uint32_t alone_count, alone_next;
};

static uint64_t recovery_offset_of(const struct volume *volume, uint32_t segment) {
    return volume_offset((uint64_t)segment * segment_blocks(volume));
}

static bool recovery_read_header(struct volume *volume, uint32_t first,
                                 struct segment_header *header) {
    return volume_read(volume, recovery_offset_of(volume, first), header, sizeof *header,
                       VOLUME_MAY_WAIT) &&
           segment_header_good(header, volume->header.identity) && header->run >= 1 &&
           header->run <= volume->header.segment_count - first;
}

static int recovery_newest_first(const void *left, const void *right) {
    const struct unit *a = left, *b = right;
    return (a->sequence < b->sequence) - (a->sequence > b->sequence);
}

static int oldest_first(const void *left, const void *right) {
    return recovery_newest_first(right, left);
}

/* Where headers contradict each other, the newest counts. */
static void keep_apart(struct recovery *recovery) {
    uint32_t segment_count = recovery->volume->header.segment_count, kept = 0;
    bool *taken = xcalloc(segment_count, sizeof *taken);
    qsort(recovery->units, recovery->count, sizeof *recovery->units, recovery_newest_first);
    for (uint32_t i = 0; i < recovery->count; i++) {
        struct unit unit = recovery->units[i];
        bool apart = true;
        for (uint32_t j = 0; j < unit.run; j++)
            apart = apart && !taken[unit.first + j];
        for (uint32_t j = 0; apart && j < unit.run; j++)
            taken[unit.first + j] = true;
        if (apart)
            recovery->units[kept++] = unit;
    }
    free(taken);
    recovery->count = kept;
    qsort(recovery->units, kept, sizeof *recovery->units, oldest_first);
}

static void recovery_find_units(struct recovery *recovery) {
    struct volume *volume = recovery->volume;
    recovery->units = xcalloc(volume->header.segment_count, sizeof *recovery->units);
    for (uint32_t i = 0; i < volume->header.segment_count; i++) {
        struct segment_header header;
        if (recovery_read_header(volume, i, &header))
            recovery->units[recovery->count++] =
                (struct unit){.sequence = header.sequence, .first = i, .run = header.run};
    }
    keep_apart(recovery);
}

/* The table of contents. */

static bool is_entry_good(const struct volume *volume, const struct unit *unit,
                          const struct record_entry *entry) {
    uint64_t blocks = (uint64_t)segment_blocks(volume) * unit->run;
    return entry->at >= SEGMENT_START / RECORD_ALIGN && entry->at < blocks &&
           entry->blocks <= blocks - entry->at &&
           (entry->kind == RECORD_REMOVAL ||
            ((entry->kind == RECORD_OBJECT || entry->kind == RECORD_RENEWAL) &&
             entry->variant != DISK_ANY_VARIANT));
}

static bool read_entries(struct volume *volume, struct unit *unit,
                         const struct segment_seal *seal) {
    size_t length = seal->count * sizeof *unit->entries;
    unit->entries = malloc(length + 1);
    unit->count = seal->count;
    if (unit->entries == NULL ||
        !volume_read(volume, recovery_offset_of(volume, unit->first) + seal->contents_at,
                     unit->entries, length, VOLUME_MAY_WAIT) ||
        record_sum(unit->entries, length) != seal->contents_sum)
        return false;
    for (uint32_t i = 0; i < unit->count; i++)
        if (!is_entry_good(volume, unit, &unit->entries[i]))
            return false;
    return true;
}

static bool read_contents(struct volume *volume, struct unit *unit) {
    struct segment_seal seal;
    struct segment_header header = {
        .identity = volume->header.identity,
        .sequence = unit->sequence,
    };
    if (!volume_read(volume, recovery_offset_of(volume, unit->first) + RECORD_ALIGN, &seal,
                     sizeof seal, VOLUME_MAY_WAIT) ||
        !segment_seal_good(&seal, &header, volume->header.segment_size * unit->run))
        return false;
    if (!read_entries(volume, unit, &seal)) {
        free(unit->entries);
        unit->entries = NULL;
        unit->count = 0;
        return false;
    }
    struct volume_segment *segment = &volume->segments[unit->first];
    segment->used = (uint32_t)record_blocks(seal.contents_at);
    atomic_store(&segment->oldest, seal.oldest);
    return true;
}

/* Scanning. */

static void recovery_add_entry(struct unit *unit, const struct record_front *front, uint32_t at,
                               uint64_t length) {
    if ((unit->count & (unit->count - 1)) == 0)
        unit->entries = xrealloc(unit->entries, (unit->count * 2 + 1) * sizeof *unit->entries);
    unit->entries[unit->count++] = (struct record_entry){
        .key = front->key.low,
        .serial = front->serial,
        .variant = front->variant,
        .at = at,
        .blocks = (uint32_t)record_blocks(length),
        .kind = front->kind,
    };
}

/* Returns the blocks of the record that begins here if it is complete, otherwise 0. */
static uint32_t take_record(struct volume *volume, struct unit *unit, const char *bytes,
                            size_t left, uint32_t at) {
    struct record record;
    struct volume_segment *segment = &volume->segments[unit->first];
    if (record_read(&record, slice_make(bytes, left), volume->header.identity, unit->sequence) !=
            RECORD_GOOD ||
        record.front.body_length > left - record.front_length ||
        !record_body_good(&record, bytes + record.front_length))
        return 0;
    const struct record_front *front = &record.front;
    if (front->kind != RECORD_REMOVAL && front->events < atomic_load(&segment->oldest))
        atomic_store(&segment->oldest, front->events);
    uint64_t length = record.front_length + front->body_length;
    recovery_add_entry(unit, front, at, length);
    segment->used = at + (uint32_t)record_blocks(length);
    return (uint32_t)record_blocks(length);
}

/* Checks every place where a record may begin, so a damaged record does not hide those after it. */
static void scan_segment(struct volume *volume, struct unit *unit) {
    size_t size = volume->header.segment_size;
    char *bytes = aligned_alloc(RECORD_ALIGN, size);
    volume->segments[unit->first].used = SEGMENT_START / RECORD_ALIGN;
    if (bytes != NULL &&
        volume_read(volume, recovery_offset_of(volume, unit->first), bytes, size, VOLUME_MAY_WAIT))
        for (uint32_t at = SEGMENT_START / RECORD_ALIGN; at < segment_blocks(volume);) {
            size_t offset = (size_t)at * RECORD_ALIGN;
            uint32_t blocks = take_record(volume, unit, bytes + offset, size - offset, at);
            at += blocks > 0 ? blocks : 1;
        }
    free(bytes);
}

/* A large record without a seal was not finished. */
static void recovery_scan(struct recovery *recovery, struct unit *unit) {
    struct volume *volume = recovery->volume;
    recovery->scanned++;
    if (unit->run == 1)
        scan_segment(volume, unit);
    if (unit->count == 0)
        segment_abandon(volume, unit->first);
    else
        segment_seal_unit(volume, unit->first, unit->entries, unit->count);
}

static void load_unit(struct recovery *recovery, struct unit *unit) {
    struct volume *volume = recovery->volume;
    struct volume_segment *segment = &volume->segments[unit->first];
    atomic_store(&segment->sequence, unit->sequence);
    segment->run = unit->run;
    atomic_store(&segment->sent, true); /* perhaps by the process before */
    for (uint32_t i = 1; i < unit->run; i++)
        segment[i].run = 0;
    if (!read_contents(volume, unit))
        recovery_scan(recovery, unit);
}

/* Into the index. */

/* Other volumes of the disk may be in use. */
static void raise_serial(_Atomic uint64_t *serial, uint64_t least) {
    uint64_t now = atomic_load(serial);
    while (now < least && !atomic_compare_exchange_weak(serial, &now, least))
        continue;
}

static void recovery_apply(struct volume *volume, const struct unit *unit,
                           const struct record_entry *entry) {
    struct disk_place place = {
        .variant = entry->variant,
        .at = unit->first * segment_blocks(volume) + entry->at,
        .blocks = entry->blocks,
        .segment = unit->first,
    };
    raise_serial(volume->hooks.next_serial, entry->serial + 1);
    if (entry->kind == RECORD_RENEWAL)
        place.variant |= DISK_RENEWAL;
    if (entry->kind == RECORD_REMOVAL)
        disk_index_remove(volume->index, entry->key, entry->variant);
    else
        disk_index_put(volume->index, entry->key, &place);
}

/* Each large record has a unit of its own, and was written between the records of other
 * segments. */
static bool stands_alone(const struct volume *volume, const struct unit *unit) {
    return unit->count == 1 &&
           (unit->run > 1 ||
            segment_run_for(volume, (uint64_t)unit->entries[0].blocks * RECORD_ALIGN) > 0);
}

static int by_serial(const void *left, const void *right) {
    const struct unit *const *a = left, *const *b = right;
    uint64_t x = (*a)->entries[0].serial, y = (*b)->entries[0].serial;
    return (x > y) - (x < y);
}

static void collect_alone(struct recovery *recovery) {
    recovery->alone = xcalloc(recovery->count + 1, sizeof *recovery->alone);
    for (uint32_t i = 0; i < recovery->count; i++)
        if (stands_alone(recovery->volume, &recovery->units[i]))
            recovery->alone[recovery->alone_count++] = &recovery->units[i];
    qsort(recovery->alone, recovery->alone_count, sizeof *recovery->alone, by_serial);
}

static void apply_alone_until(struct recovery *recovery, uint64_t serial) {
    while (recovery->alone_next < recovery->alone_count &&
           recovery->alone[recovery->alone_next]->entries[0].serial < serial) {
        const struct unit *unit = recovery->alone[recovery->alone_next++];
        recovery_apply(recovery->volume, unit, &unit->entries[0]);
    }
}

static void apply_all(struct recovery *recovery) {
    struct volume *volume = recovery->volume;
    collect_alone(recovery);
    for (uint32_t i = 0; i < recovery->count; i++) {
        const struct unit *unit = &recovery->units[i];
        if (stands_alone(volume, unit))
            continue;
        for (uint32_t j = 0; j < unit->count; j++) {
            apply_alone_until(recovery, unit->entries[j].serial);
            recovery_apply(volume, unit, &unit->entries[j]);
        }
    }
    apply_alone_until(recovery, UINT64_MAX);
}

/* Large ones that were replaced or removed. */
static void abandon_lost(struct recovery *recovery) {
    struct volume *volume = recovery->volume;
    for (uint32_t i = 0; i < recovery->alone_count; i++) {
        const struct unit *unit = recovery->alone[i];
        uint32_t at = unit->first * segment_blocks(volume) + unit->entries[0].at;
        if (!disk_index_has_place(volume->index, unit->entries[0].key, at))
            segment_abandon(volume, unit->first);
    }
}

static void set_hand(struct recovery *recovery) {
    struct volume *volume = recovery->volume;
    if (recovery->count == 0)
        return;
    const struct unit *newest = &recovery->units[recovery->count - 1];
    uint32_t next = newest->first + newest->run;
    volume->hand = next < volume->header.segment_count ? next : 0;
}

/* This is more than the next number. A segment with a damaged header, or one that was given
 * back, may have had the next number. If the log reached the same place with the same number,
 * older records there would count. */
static uint64_t first_sequence(const struct recovery *recovery) {
    uint32_t skipped;
    if (getrandom(&skipped, sizeof skipped, 0) != (ssize_t)sizeof skipped)
        skipped = (uint32_t)time(NULL);
    uint64_t newest = recovery->count == 0 ? 0 : recovery->units[recovery->count - 1].sequence;
    return newest + 1 + skipped;
}

void volume_recover(struct volume *volume) {
    struct recovery recovery = {.volume = volume};
    uint64_t begin = volume_clock();
    recovery_find_units(&recovery);
    volume->next_sequence = first_sequence(&recovery);
    for (uint32_t i = 0; i < recovery.count; i++)
        load_unit(&recovery, &recovery.units[i]);
    apply_all(&recovery);
    abandon_lost(&recovery);
    set_hand(&recovery);
    for (uint32_t i = 0; i < recovery.count; i++)
        free(recovery.units[i].entries);
    free(recovery.units);
    free(recovery.alone);
    log_info("disk %s: %lu objects recovered in %lu ms (%u segments, %u of them scanned)",
             volume->path, (unsigned long)disk_index_count(volume->index),
             (unsigned long)(volume_clock() - begin), recovery.count, recovery.scanned);
}
