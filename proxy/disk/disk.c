#include "disk/disk.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/admission_filter.h"
#include "disk/reading.h"
#include "disk/writer.h"

#include <stdio.h>
#include <time.h>

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
    for (size_t i = 0; i < settings->cache.disk_count; i++)
        if (volume_read_secret(&settings->cache.disks[i], &secret)) {
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
        .taken = taken,
    };
    for (size_t i = 0; i < disk->settings->cache.disk_count; i++) {
        const struct disk_settings *settings = &disk->settings->cache.disks[i];
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
    for (size_t i = 0; i < settings->cache.disk_count; i++)
        count += settings->cache.disks[i].threads;
    return count;
}

static struct disk *open_disk(struct settings *settings, struct cache *cache, bool taken,
                              char error[SETTINGS_ERROR]) {
    size_t count = settings->cache.disk_count;
    error[0] = '\0';
    if (count == 0)
        return NULL;
    struct disk *disk = xcalloc(1, sizeof *disk + count * sizeof(struct volume *));
    disk->magic = DISK_MAGIC;
    disk->settings = settings_reference(settings);
    disk->cache = cache;
    purge_log_init(&disk->purges);
    purge_writer_init(&disk->writer, disk);
    take_secret(settings);
    disk->recent = admission_filter_of_memory(settings->cache.memory);
    disk->reads = reads_new(reader_count(settings), settings->cache.disk_io == DISK_IO_AUTO);
    if (disk->reads == NULL)
        snprintf(error, SETTINGS_ERROR, "cannot start a thread");
    if (disk->reads != NULL && open_volumes(disk, taken, error))
        log_info("disks are read by %s", reads_kind(disk->reads));
    else
        disk_close(&disk);
    return disk;
}

struct disk *disk_open(struct settings *settings, struct cache *cache, char error[SETTINGS_ERROR]) {
    return open_disk(settings, cache, false, error);
}

struct disk *disk_take(struct settings *settings, struct cache *cache, char error[SETTINGS_ERROR]) {
    return open_disk(settings, cache, true, error);
}

void disk_stop(struct disk *disk) {
    if (disk == NULL)
        return;
    CHECK_OBJ(disk, DISK_MAGIC);
    reads_free(&disk->reads);
    for (size_t i = 0; i < disk->count; i++)
        volume_stop(disk->volumes[i]);
}

void disk_close(struct disk **diskp) {
    struct disk *disk = *diskp;
    *diskp = NULL;
    if (disk == NULL)
        return;
    CHECK_OBJ(disk, DISK_MAGIC);
    disk_stop(disk);
    for (size_t i = 0; i < disk->count; i++)
        volume_close(&disk->volumes[i]);
    purge_log_release(&disk->purges);
    purge_writer_release(&disk->writer);
    admission_filter_free(&disk->admission);
    admission_filter_free(&disk->recent);
    settings_release(&disk->settings);
    FREE_OBJ(disk);
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

struct disk_moment disk_now(const struct disk *disk) {
    if (disk == NULL)
        return (struct disk_moment){0};
    return (struct disk_moment){
        .purges = purge_log_newest(&disk->purges),
        .memory = cache_now(disk->cache),
    };
}

/* Removes the object from all other volumes. It may have been written to one of them before this
 * volume was added. */
static void remove_replaced(struct disk *disk, const struct object *object,
                            const struct volume *but) {
    for (size_t i = 0; i < disk->count; i++)
        if (disk->volumes[i] != but)
            volume_supersede(disk->volumes[i], object, variant_of(object));
}

void disk_supersede(struct disk *disk, const struct object *object) {
    if (disk != NULL)
        remove_replaced(disk, object, NULL);
}

/* A new head for a body on disk needs no admission, but it must be on the volume of its key. */
static bool is_for_disk(struct disk *disk, struct volume *volume, const struct object *object,
                        bool by_operator) {
    if (object->body->kind == BODY_BACKED)
        return is_keepable(object) && disk_body_is_on(object->body, volume);
    bool admitted =
        is_keepable(object) &&
        (by_operator ? disk_fits(volume, body_length(object->body))
                     : is_admitted(disk, volume, object->key, body_length(object->body)));
    remove_replaced(disk, object, admitted ? volume : NULL);
    return admitted;
}

static void disk_store_object(struct disk *disk, struct object *object,
                              const struct disk_moment *since, bool by_operator) {
    if (disk == NULL)
        return;
    CHECK_OBJ(disk, DISK_MAGIC);
    struct volume *volume = volume_for(disk, object->key);
    if (body_state(object->body) != BODY_COMPLETE || object->body->kind == BODY_PASSING ||
        object_chain(object) != 0 || !cache_would_hold(disk->cache, object, &since->memory))
        return;
    if (!is_for_disk(disk, volume, object, by_operator))
        return;
    volume_store(volume, object, variant_of(object), since->purges);
    if (!cache_would_hold(disk->cache, object, &since->memory))
        volume_remove(volume, object->key, variant_of(object));
}

void disk_store(struct disk *disk, struct object *object, const struct disk_moment *since) {
    disk_store_object(disk, object, since, false);
}

void disk_inject(struct disk *disk, struct object *object, const struct disk_moment *since) {
    disk_store_object(disk, object, since, true);
}

struct volume_stream *disk_stream_open(struct disk *disk, struct object *object,
                                       uint64_t body_length, const struct disk_moment *since) {
    if (disk == NULL || !is_keepable(object))
        return NULL;
    CHECK_OBJ(disk, DISK_MAGIC);
    struct volume *volume = volume_for(disk, object->key);
    if (!is_admitted(disk, volume, object->key, body_length))
        return NULL;
    struct volume_stream *stream =
        volume_stream_open(volume, object, variant_of(object), since->purges, body_length);
    if (stream != NULL)
        remove_replaced(disk, object, NULL);
    return stream;
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

unsigned disk_forget(struct disk *disk, const struct cache_name *name) {
    unsigned count = 0;
    for (size_t i = 0; disk != NULL && i < disk->count; i++)
        count += volume_remove_surely(disk->volumes[i], name->key);
    return count;
}

unsigned disk_remove_surely(struct disk *disk, const struct cache_name *name) {
    unsigned count = disk_forget(disk, name);
    if (disk != NULL)
        remove_loaded(disk, name, NULL);
    return count;
}

unsigned disk_remove(struct disk *disk, const struct cache_name *name,
                     const struct object *object) {
    unsigned count = 0;
    if (disk == NULL)
        return 0;
    CHECK_OBJ(disk, DISK_MAGIC);
    uint32_t variant = object == NULL ? DISK_ANY_VARIANT : variant_of(object);
    for (size_t i = 0; i < disk->count; i++)
        count += volume_remove(disk->volumes[i], name->key, variant);
    if (count > 0)
        remove_loaded(disk, name, object);
    return count;
}

bool disk_purge(struct disk *disk, const struct object_filter *filter, enum purge_action action) {
    if (disk == NULL)
        return true;
    CHECK_OBJ(disk, DISK_MAGIC);
    struct purge_slots slots = {0};
    purge_log_add(&disk->purges, filter, action, &slots);
    return purge_writer_keep(&disk->writer, &slots);
}

bool disk_keep_generation(struct disk *disk, uint64_t service, uint64_t generation) {
    if (disk == NULL)
        return true;
    CHECK_OBJ(disk, DISK_MAGIC);
    struct purge_slots slots = {0};
    purge_log_keep_generation(&disk->purges, service, generation);
    purge_slots_add_generation(&slots, service, generation);
    return purge_writer_keep(&disk->writer, &slots);
}

uint64_t disk_kept_generation(struct disk *disk, uint64_t service) {
    return disk == NULL ? 0 : purge_log_kept_generation(&disk->purges, service);
}

bool disk_commit(struct disk *disk) {
    bool kept = true;
    for (size_t i = 0; disk != NULL && i < disk->count; i++)
        kept = volume_commit(disk->volumes[i]) && kept;
    return kept;
}

bool disk_has_object(struct disk *disk, const struct object *object) {
    struct disk_place places[2 * DISK_VARIANTS];
    struct volume *volume = volume_for(disk, object->key);
    unsigned count =
        disk_index_find(volume->index, object->key.low, places, sizeof places / sizeof *places);
    for (unsigned i = 0; i < count; i++)
        if (places[i].variant == variant_of(object))
            return true;
    return false;
}

bool disk_has_lost(const struct disk *disk) {
    bool lost = false;
    for (size_t i = 0; disk != NULL && i < disk->count; i++)
        lost = lost || atomic_load_explicit(&disk->volumes[i]->lost, memory_order_relaxed);
    return lost;
}

uint64_t disk_lapses(const struct disk *disk) {
    uint64_t lapses = 0;
    for (size_t i = 0; disk != NULL && i < disk->count; i++)
        lapses += volume_lapses(disk->volumes[i]);
    return lapses;
}

bool disk_has(struct disk *disk, struct cache_key key) {
    struct disk_place place;
    for (size_t i = 0; disk != NULL && i < disk->count; i++)
        if (disk_index_find(disk->volumes[i]->index, key.low, &place, 1) > 0)
            return true;
    return false;
}

void disk_statistics(struct disk *disk, struct volume_statistics *statistics) {
    memset(statistics, 0, sizeof *statistics);
    for (size_t i = 0; disk != NULL && i < disk->count; i++) {
        struct volume_statistics one;
        volume_statistics(disk->volumes[i], &one);
        statistics->objects += one.objects;
        statistics->capacity += one.capacity;
        statistics->index_bytes += one.index_bytes;
        statistics->writes += one.writes;
        statistics->bytes_written += one.bytes_written;
        statistics->dropped += one.dropped;
        statistics->errors += one.errors;
        statistics->corrupt += one.corrupt;
        statistics->reclaimed += one.reclaimed;
        statistics->rewritten += one.rewritten;
    }
}
