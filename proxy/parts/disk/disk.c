#include "disk/disk.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/admission_filter.h"
#include "disk/lending.h"
#include "disk/reading.h"
#include "disk/stream.h"
#include "disk/writer.h"

#include <stdio.h>
#include <string.h>

static const struct second_level_class disk_class; /* at the end */

/* Hooks that volumes call. */

/* Removes objects from memory whose body is in a segment that will be overwritten. */
static void disk_leave(void *arg, struct volume *volume, uint32_t segment) {
    struct disk *disk;
    size_t count;
    CAST_OBJ(disk, arg, DISK_MAGIC);
    struct cache_key *keys = disk_body_keys(volume, segment, &count);
    struct cache_walk walk = {0};
    for (size_t i = 0; i < count; i++) {
        cache_walk_key(disk->cache, &walk, keys[i]);
        for (size_t j = 0; j < walk.count; j++)
            if (disk_body_is_in(walk.objects[j]->body, volume, segment))
                cache_remove(disk->cache, walk.objects[j]);
    }
    cache_walk_end(&walk);
    free(keys);
}

static bool used(void *arg, uint64_t key) {
    struct disk *disk;
    CAST_OBJ(disk, arg, DISK_MAGIC);
    return cache_uses(disk->cache, key);
}

static bool keep_in_memory(void *arg, struct object *object) {
    struct disk *disk;
    CAST_OBJ(disk, arg, DISK_MAGIC);
    return cache_hold(disk->cache, object);
}

static void is_written(void *arg, struct object *object) {
    struct disk *disk;
    CAST_OBJ(disk, arg, DISK_MAGIC);
    cache_unhold(disk->cache, object);
}

static bool outdated(void *arg, const struct record *record) {
    struct disk *disk;
    CAST_OBJ(disk, arg, DISK_MAGIC);
    if (record->front.events == purge_log_newest(&disk->purges))
        return false;
    struct object *object = writer_bare_object(record);
    bool gone = object == NULL ||
                purge_log_judge(&disk->purges, object, record->front.events) != PURGE_NOTHING;
    object_release(&object);
    return gone;
}

/* Opening. */

enum {
    ADMISSION_KEYS = 838860, /* keys that a filter remembers */
    RECENT_LEAST = 1024,     /* smallest size of an object */
    RECENT_KEYS = 1024,
};

/* An object that is requested again within as many bytes as memory holds would still be in
 * memory. Each of the two filters covers half of these bytes. */
static struct admission_filter *admission_filter_of_memory(uint64_t memory) {
    uint64_t keys = memory / 2 / RECENT_LEAST;
    keys = keys < RECENT_KEYS ? RECENT_KEYS : keys > ADMISSION_KEYS ? ADMISSION_KEYS : keys;
    return admission_filter_new((unsigned)keys, memory / 2);
}

/* Memory and all volumes use one secret: that of the first volume that has one. */
static void take_secret(const struct settings *settings) {
    struct cache_secret secret;
    for (size_t i = 0; i < disks_of(settings)->count; i++)
        if (volume_read_secret(&disks_of(settings)->disks[i], &secret)) {
            cache_set_secret(&secret);
            return;
        }
}

static bool open_volumes(struct disk *disk, bool taken, char error[SETTINGS_ERROR]) {
    unsigned variants = disk->settings->cache.max_variants;
    const struct volume_hooks hooks = {
        .arg = disk,
        .max_variants = variants < DISK_VARIANTS ? variants : DISK_VARIANTS,
        .leave = disk_leave,
        .outdated = outdated,
        .used = used,
        .keep = keep_in_memory,
        .written = is_written,
        .next_serial = &disk->next_serial,
        .taken = taken,
    };
    for (size_t i = 0; i < disks_of(disk->settings)->count; i++) {
        const struct disk_settings *settings = &disks_of(disk->settings)->disks[i];
        struct volume *volume = volume_open(settings, &hooks, error);
        if (volume == NULL)
            return false;
        disk->volumes[disk->count++] = volume;
        volume_read_purges(volume, &disk->purges);
        if (settings->admission == DISK_ADMIT_SECOND && disk->admission == NULL)
            disk->admission = admission_filter_new(ADMISSION_KEYS, ADMISSION_KEYS);
    }
    for (size_t i = 0; i < disk->count; i++)
        if (!volume_start(disk->volumes[i])) {
            snprintf(error, SETTINGS_ERROR, "cannot start a thread");
            return false;
        }
    return true;
}

static unsigned reader_count(const struct settings *settings) {
    unsigned count = 0;
    for (size_t i = 0; i < disks_of(settings)->count; i++)
        count += disks_of(settings)->disks[i].threads;
    return count;
}

static void disk_stop(struct second_level *level) {
    struct disk *disk = disk_of(level);
    reads_free(&disk->reads);
    for (size_t i = 0; i < disk->count; i++)
        volume_stop(disk->volumes[i]);
}

static void disk_close(struct second_level *level) {
    struct disk *disk = disk_of(level);
    disk_stop(level);
    for (size_t i = 0; i < disk->count; i++)
        volume_close(&disk->volumes[i]);
    purge_log_release(&disk->purges);
    purge_writer_release(&disk->writer);
    admission_filter_free(&disk->admission);
    admission_filter_free(&disk->recent);
    settings_release(&disk->settings);
    FREE_OBJ(disk);
}

static struct disk *disk_new(struct settings *settings, struct cache *cache) {
    struct disk *disk =
        xcalloc(1, sizeof *disk + disks_of(settings)->count * sizeof(struct volume *));
    disk->base.class = &disk_class;
    disk->magic = DISK_MAGIC;
    disk->settings = settings_reference(settings);
    disk->cache = cache;
    disk->next_serial = 1;
    purge_log_init(&disk->purges);
    purge_writer_init(&disk->writer, disk);
    disk->recent = admission_filter_of_memory(settings->cache.memory);
    disk->reads = reads_new(reader_count(settings), disks_of(settings)->io == DISK_IO_AUTO);
    return disk;
}

struct second_level *disk_open(struct settings *settings, struct cache *cache, bool taken,
                               char error[SETTINGS_ERROR]) {
    error[0] = '\0';
    if (disks_of(settings)->count == 0)
        return NULL;
    take_secret(settings);
    struct disk *disk = disk_new(settings, cache);
    struct second_level *level = &disk->base;
    if (disk->reads == NULL)
        snprintf(error, SETTINGS_ERROR, "cannot start a thread");
    if (disk->reads != NULL && open_volumes(disk, taken, error))
        log_info("disks are read by %s", reads_kind(disk->reads));
    else
        second_level_close(&level);
    return level;
}

/* Storing. */

/* See disk_variant_names: the lines of a selector are "name:value". The URL is included, so that
 * two names with the same key do not replace each other. */
static uint32_t variant_of(const struct object *object) {
    struct slice vary = object_selector(object), rest = vary;
    uint64_t names = object->scope, values = cache_hash(vary) ^ cache_hash(object_url(object));
    const char *end, *colon;
    while ((end = memchr(rest.base, '\n', rest.length)) != NULL) {
        colon = memchr(rest.base, ':', rest.length);
        size_t length = (size_t)((colon != NULL && colon < end ? colon : end) - rest.base);
        names = names * 31 + cache_hash(slice_make(rest.base, length));
        rest = slice_make(end + 1, rest.length - (size_t)(end + 1 - rest.base));
    }
    uint32_t hash = (uint32_t)(names & ((1u << DISK_VARIANT_NAME_BITS) - 1))
                        << DISK_VARIANT_VALUE_BITS |
                    (uint32_t)(values & ((1u << DISK_VARIANT_VALUE_BITS) - 1));
    return hash == DISK_ANY_VARIANT ? 1 : hash;
}

/* Volumes are chosen by the key, in proportion to their sizes. */
static struct volume *volume_for(struct disk *disk, struct cache_key key) {
    uint64_t total = 0;
    for (size_t i = 0; i < disk->count; i++)
        total +=
            disk->volumes[i]->header.segment_count * (disk->volumes[i]->header.segment_size >> 20);
    uint64_t at = total == 0 ? 0 : key.high % total;
    for (size_t i = 0; i + 1 < disk->count; i++) {
        uint64_t share =
            disk->volumes[i]->header.segment_count * (disk->volumes[i]->header.segment_size >> 20);
        if (at < share)
            return disk->volumes[i];
        at -= share;
    }
    return disk->volumes[disk->count - 1];
}

static bool disk_fits(const struct volume *volume, uint64_t body_length) {
    return body_length <= volume->settings->max_object && body_length <= volume->header.size / 4;
}

static bool is_admitted(struct disk *disk, const struct volume *volume, struct cache_key key,
                        uint64_t body_length) {
    return disk_fits(volume, body_length) && (volume->settings->admission == DISK_ADMIT_ALL ||
                                              admission_filter_has_seen(disk->admission, key, 1));
}

static bool is_keepable(const struct object *object) {
    return object->status != 206 && object->head_length <= RECORD_TEXT_MAX &&
           object->url_length <= RECORD_TEXT_MAX && object->vary_length <= RECORD_TEXT_MAX;
}

static struct second_level_moment disk_now(struct second_level *level) {
    return (struct second_level_moment){.purges = purge_log_newest(&disk_of(level)->purges)};
}

static void disk_supersede(struct second_level *level, const struct object *object) {
    struct disk *disk = disk_of(level);
    for (size_t i = 0; i < disk->count; i++)
        volume_supersede(disk->volumes[i], object, variant_of(object));
}

/* Removes the object from all other volumes. It may have been written to one of them before this
 * volume was added. */
static void leave_out_of_others(struct disk *disk, struct object *object,
                                const struct volume *but) {
    for (size_t i = 0; i < disk->count; i++)
        if (disk->volumes[i] != but)
            volume_leave_out(disk->volumes[i], object, variant_of(object));
}

static void disk_leave_out(struct second_level *level, struct object *object) {
    leave_out_of_others(disk_of(level), object, NULL);
}

/* A new head for a body on disk needs no admission, but it must be on the volume of its key. */
static bool is_for_disk(struct disk *disk, struct volume *volume, const struct object *object,
                        bool by_operator) {
    if (!is_keepable(object))
        return false;
    if (object->body->kind == BODY_BACKED)
        return disk_body_is_on(object->body, volume);
    uint64_t length = body_length(object->body);
    return by_operator ? disk_fits(volume, length) : is_admitted(disk, volume, object->key, length);
}

static bool disk_store(struct second_level *level, struct object *object,
                       const struct second_level_moment *since, bool by_operator) {
    struct disk *disk = disk_of(level);
    struct volume *volume = volume_for(disk, object->key);
    if (body_state(object->body) != BODY_COMPLETE || object->body->kind == BODY_PASSING ||
        object_chain(object) != 0)
        return false;
    bool stored = is_for_disk(disk, volume, object, by_operator);
    leave_out_of_others(disk, object, stored ? volume : NULL);
    return stored && volume_store(volume, object, variant_of(object), since->purges);
}

static struct second_level_stream *disk_stream_open(struct second_level *level,
                                                    struct object *object, uint64_t body_length,
                                                    const struct second_level_moment *since) {
    struct disk *disk = disk_of(level);
    struct volume *volume = volume_for(disk, object->key);
    if (!is_keepable(object) || !is_admitted(disk, volume, object->key, body_length))
        return NULL;
    struct volume_stream *stream =
        volume_stream_open(volume, object, variant_of(object), since->purges, body_length);
    if (stream == NULL)
        return NULL;
    stream->base.class = &disk_class;
    disk_supersede(level, object);
    return &stream->base;
}

static bool disk_stream_is_behind(struct second_level_stream *stream, uint64_t now) {
    return volume_stream_is_behind(CONTAINER_OF(stream, struct volume_stream, base), now);
}

static void disk_stream_put(struct second_level_stream *stream, struct slice bytes) {
    volume_stream_put(CONTAINER_OF(stream, struct volume_stream, base), bytes);
}

static void disk_stream_close(struct second_level_stream *stream, bool whole) {
    struct volume_stream *closed = CONTAINER_OF(stream, struct volume_stream, base);
    volume_stream_close(&closed, whole);
}

/* A load that found the object before may have brought it to memory since then, or is about to
 * do so. */
static void remove_loaded(struct disk *disk, const struct cache_name *name,
                          const struct object *object) {
    struct cache_walk walk = {0};
    purges_add_key(cache_purges(disk->cache), name->key);
    cache_walk_name(disk->cache, &walk, name);
    for (size_t i = 0; i < walk.count; i++)
        if (object == NULL || object_same_variant(walk.objects[i], object) ||
            object_is_made_of(walk.objects[i], object))
            cache_remove(disk->cache, walk.objects[i]);
    cache_walk_end(&walk);
}

static unsigned forget_name(struct disk *disk, const struct cache_name *name) {
    unsigned count = 0;
    for (size_t i = 0; i < disk->count; i++)
        count += volume_remove_surely(disk->volumes[i], name->key);
    return count;
}

static void disk_forget(struct second_level *level, const struct cache_name *name) {
    forget_name(disk_of(level), name);
}

static unsigned disk_remove_surely(struct second_level *level, const struct cache_name *name) {
    struct disk *disk = disk_of(level);
    unsigned count = forget_name(disk, name);
    remove_loaded(disk, name, NULL);
    return count;
}

static unsigned disk_remove(struct second_level *level, const struct cache_name *name,
                            const struct object *object) {
    unsigned count = 0;
    struct disk *disk = disk_of(level);
    uint32_t variant = object == NULL ? DISK_ANY_VARIANT : variant_of(object);
    for (size_t i = 0; i < disk->count; i++)
        count += volume_remove(disk->volumes[i], name->key, variant);
    if (count > 0)
        remove_loaded(disk, name, object);
    return count;
}

static bool disk_purge(struct second_level *level, const struct object_filter *filter,
                       enum purge_action action) {
    struct disk *disk = disk_of(level);
    struct purge_slots slots = {0};
    purge_log_add(&disk->purges, filter, action, &slots);
    return purge_writer_keep(&disk->writer, &slots);
}

static bool disk_keep_generation(struct second_level *level, uint64_t service,
                                 uint64_t generation) {
    struct disk *disk = disk_of(level);
    struct purge_slots slots = {0};
    purge_log_keep_generation(&disk->purges, service, generation);
    purge_slots_add_generation(&slots, service, generation);
    return purge_writer_keep(&disk->writer, &slots);
}

static uint64_t disk_kept_generation(struct second_level *level, uint64_t service) {
    return purge_log_kept_generation(&disk_of(level)->purges, service);
}

static bool disk_commit(struct second_level *level) {
    struct disk *disk = disk_of(level);
    bool kept = true;
    for (size_t i = 0; i < disk->count; i++)
        kept = volume_commit(disk->volumes[i]) && kept;
    return kept;
}

static bool disk_has_object(struct second_level *level, const struct object *object) {
    struct disk *disk = disk_of(level);
    struct disk_place places[2 * DISK_VARIANTS];
    struct volume *volume = volume_for(disk, object->key);
    unsigned count =
        disk_index_find_all(volume->index, object->key.low, places, sizeof places / sizeof *places);
    for (unsigned i = 0; i < count; i++)
        if (places[i].variant == variant_of(object))
            return true;
    return false;
}

static bool disk_has_lost(struct second_level *level) {
    struct disk *disk = disk_of(level);
    bool lost = false;
    for (size_t i = 0; i < disk->count; i++)
        lost = lost || atomic_load_explicit(&disk->volumes[i]->lost, memory_order_relaxed);
    return lost;
}

static uint64_t disk_lapses(struct second_level *level) {
    struct disk *disk = disk_of(level);
    uint64_t lapses = 0;
    for (size_t i = 0; i < disk->count; i++)
        lapses += volume_lapses(disk->volumes[i]);
    return lapses;
}

static bool disk_has(struct second_level *level, struct cache_key key) {
    struct disk *disk = disk_of(level);
    struct disk_place place;
    for (size_t i = 0; i < disk->count; i++)
        if (disk_index_find(disk->volumes[i]->index, key.low, &place, 1) > 0)
            return true;
    return false;
}

static const struct second_level_number disk_numbers[] = {
    {"disk_objects", "Objects on disk.", COUNTER_GAUGE},
    {"disk_capacity_bytes", "Bytes that the volumes have for records.", COUNTER_GAUGE},
    {"disk_index_bytes", "Bytes of memory that the index of the disk takes.", COUNTER_GAUGE},
    {"disk_writes", "Records written to disk.", COUNTER_TOTAL},
    {"disk_bytes_written", "Bytes written to disk.", COUNTER_TOTAL},
    {"disk_writes_dropped",
     "Objects that were not written because disk.write_queue was full or a write failed.",
     COUNTER_TOTAL},
    {"disk_errors", "Reads and writes that failed.", COUNTER_TOTAL},
    {"disk_corrupt", "Damaged records found on disk.", COUNTER_TOTAL},
    {"disk_segments_reclaimed", "Segments whose objects were removed to make room for newer ones.",
     COUNTER_TOTAL},
    {"disk_rewritten",
     "Objects written again because they were in use when their segment was removed.",
     COUNTER_TOTAL},
    {NULL, NULL, COUNTER_TOTAL},
};

/* The order is that of the rows. */
static void disk_report(struct second_level *level, uint64_t values[SECOND_LEVEL_NUMBERS]) {
    struct disk *disk = disk_of(level);
    memset(values, 0, SECOND_LEVEL_NUMBERS * sizeof *values);
    for (size_t i = 0; i < disk->count; i++) {
        struct volume_statistics one;
        volume_statistics(disk->volumes[i], &one);
        const uint64_t more[] = {one.objects,       one.capacity, one.index_bytes, one.writes,
                                 one.bytes_written, one.dropped,  one.errors,      one.corrupt,
                                 one.reclaimed,     one.rewritten};
        enum { COUNT = sizeof more / sizeof *more };
        _Static_assert(COUNT + 1 == sizeof disk_numbers / sizeof *disk_numbers &&
                           (int)COUNT <= (int)SECOND_LEVEL_NUMBERS,
                       "each number has a row");
        for (unsigned k = 0; k < COUNT; k++)
            values[k] += more[k];
    }
}

static const struct second_level_class disk_class = {
    .now = disk_now,
    .store = disk_store,
    .supersede = disk_supersede,
    .leave_out = disk_leave_out,
    .remove = disk_remove,
    .remove_surely = disk_remove_surely,
    .forget = disk_forget,
    .purge = disk_purge,
    .keep_generation = disk_keep_generation,
    .kept_generation = disk_kept_generation,
    .commit = disk_commit,
    .has = disk_has,
    .has_object = disk_has_object,
    .has_lost = disk_has_lost,
    .lapses = disk_lapses,
    .load_start = disk_load_start,
    .load_is_done = disk_load_is_done,
    .load_take = disk_load_take,
    .load_end = disk_load_end,
    .load_now = disk_load_now,
    .stream_open = disk_stream_open,
    .stream_is_behind = disk_stream_is_behind,
    .stream_put = disk_stream_put,
    .stream_close = disk_stream_close,
    .walk = disk_walk,
    .numbers = disk_numbers,
    .report = disk_report,
    .lend = disk_lend,
    .take_back = disk_take_back,
    .stop = disk_stop,
    .close = disk_close,
};
