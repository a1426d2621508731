#include "disk/disk.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/disk_body.h"
#include "disk/doorkeeper.h"
#include "disk/purge_log.h"

#include <stdio.h>
#include <time.h>
#include <xxhash.h>

enum { VARIANTS_MAX = 32, FRONT_FIRST = 16 * 1024 };

struct disk {
    unsigned magic;
#define DISK_MAGIC 0xd15cd15cu
    struct settings *settings; /* referenced */
    struct cache *cache;
    struct readers *readers;
    pthread_mutex_t purging; /* one purge at a time is written */
    struct purge_log purges;
    struct doorkeeper *doorkeeper; /* NULL: no volume asks for it */
    size_t count;
    struct volume *volumes[];
};

/* What volumes ask for. */

/* Objects in memory whose body stands in a segment that is to be used again. */
static void leave(void *arg, struct volume *volume, uint32_t segment) {
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

/* The object that a record stands for, with another body. */
static struct object *object_of(const struct record *record, struct body *body) {
    return object_import(record->front.key, &record->front.image, record->url, record->head,
                         record->vary, body);
}

static struct object *bare_object_of(const struct record *record) {
    struct body *nothing = body_of_bytes(SLICE(""));
    struct object *object = object_of(record, nothing);
    body_release(&nothing);
    return object;
}

static bool outdated(void *arg, const struct record *record) {
    struct disk *disk;
    CAST_OBJ(disk, arg, DISK_MAGIC);
    if (record->front.events >= purge_log_newest(&disk->purges))
        return false;
    struct object *object = bare_object_of(record);
    bool gone = object == NULL ||
                purge_log_judge(&disk->purges, object, record->front.events) != PURGE_NOTHING;
    object_release(&object);
    return gone;
}

/* Opening. */

static bool open_volumes(struct disk *disk, char error[SETTINGS_ERROR]) {
    const struct volume_hooks hooks = {.arg = disk, .leave = leave, .outdated = outdated};
    for (size_t i = 0; i < disk->settings->cache.disk_count; i++) {
        const struct disk_settings *settings = &disk->settings->cache.disks[i];
        struct volume *volume = volume_open(settings, &hooks, error);
        if (volume == NULL)
            return false;
        disk->volumes[disk->count++] = volume;
        uint64_t floor, newest;
        struct slice text = volume_read_purges(volume, &floor, &newest);
        purge_log_read(&disk->purges, text, floor, newest);
        free((char *)text.base);
        if (settings->admission == DISK_ADMIT_SECOND && disk->doorkeeper == NULL)
            disk->doorkeeper = doorkeeper_new();
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

struct disk *disk_open(struct settings *settings, struct cache *cache, char error[SETTINGS_ERROR]) {
    size_t count = settings->cache.disk_count;
    error[0] = '\0';
    if (count == 0)
        return NULL;
    struct disk *disk = xcalloc(1, sizeof *disk + count * sizeof(struct volume *));
    disk->magic = DISK_MAGIC;
    disk->settings = settings_reference(settings);
    disk->cache = cache;
    disk->readers = readers_new(reader_count(settings));
    pthread_mutex_init(&disk->purging, NULL);
    purge_log_init(&disk->purges);
    if (!open_volumes(disk, error))
        disk_close(&disk);
    return disk;
}

void disk_stop(struct disk *disk) {
    if (disk == NULL)
        return;
    CHECK_OBJ(disk, DISK_MAGIC);
    readers_free(&disk->readers);
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
    pthread_mutex_destroy(&disk->purging);
    doorkeeper_free(&disk->doorkeeper);
    settings_release(&disk->settings);
    FREE_OBJ(disk);
}

/* Storing. */

static uint32_t variant_of(const struct object *object) {
    struct slice vary = object_vary(object);
    uint32_t hash = (uint32_t)XXH3_64bits_withSeed(vary.base, vary.length, object->scope);
    return hash == DISK_ANY_VARIANT ? 1 : hash;
}

/* By the key, in proportion to the sizes. */
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

static bool is_admitted(struct disk *disk, const struct volume *volume, struct cache_key key,
                        uint64_t body_length) {
    return body_length <= volume->settings->max_object && body_length <= volume->header.size / 4 &&
           (volume->settings->admission == DISK_ADMIT_ALL ||
            doorkeeper_has_seen(disk->doorkeeper, key));
}

static bool is_keepable(const struct object *object) {
    return object->status != 206 && object->head_length <= RECORD_TEXT_MAX &&
           object->url_length <= RECORD_TEXT_MAX && object->vary_length <= RECORD_TEXT_MAX;
}

uint64_t disk_now(const struct disk *disk) {
    return disk == NULL ? 0 : purge_log_newest(&disk->purges);
}

void disk_store(struct disk *disk, struct object *object, uint64_t since) {
    if (disk == NULL)
        return;
    CHECK_OBJ(disk, DISK_MAGIC);
    struct volume *volume = volume_for(disk, object->key);
    if (body_state(object->body) != BODY_COMPLETE || object->body->kind != BODY_SHARED ||
        !is_keepable(object) || !is_admitted(disk, volume, object->key, body_length(object->body)))
        return;
    volume_store(volume, object, variant_of(object), since);
    if (!cache_holds(disk->cache, object))
        volume_remove(volume, object->key, variant_of(object));
}

struct volume_stream *disk_stream_open(struct disk *disk, struct object *object,
                                       uint64_t body_length, uint64_t since) {
    if (disk == NULL || !is_keepable(object))
        return NULL;
    CHECK_OBJ(disk, DISK_MAGIC);
    struct volume *volume = volume_for(disk, object->key);
    if (!is_admitted(disk, volume, object->key, body_length))
        return NULL;
    return volume_stream_open(volume, object, variant_of(object), since, body_length);
}

unsigned disk_remove(struct disk *disk, struct cache_key key, const struct object *object) {
    unsigned count = 0;
    if (disk == NULL)
        return 0;
    CHECK_OBJ(disk, DISK_MAGIC);
    uint32_t variant = object == NULL ? DISK_ANY_VARIANT : variant_of(object);
    for (size_t i = 0; i < disk->count; i++)
        count += volume_remove(disk->volumes[i], key, variant);
    return count;
}

static uint64_t oldest_of(struct disk *disk) {
    uint64_t oldest = purge_log_newest(&disk->purges);
    for (size_t i = 0; i < disk->count; i++) {
        uint64_t one = volume_oldest(disk->volumes[i]);
        oldest = one < oldest ? one : oldest;
    }
    return oldest;
}

void disk_purge(struct disk *disk, const struct object_filter *filter, enum purge_action action) {
    size_t length;
    if (disk == NULL)
        return;
    CHECK_OBJ(disk, DISK_MAGIC);
    uint64_t oldest = oldest_of(disk);
    pthread_mutex_lock(&disk->purging);
    purge_log_forget(&disk->purges, oldest);
    purge_log_add(&disk->purges, filter, action);
    char *text =
        purge_log_write(&disk->purges, PURGES_SIZE - sizeof(struct purges_header), &length);
    for (size_t i = 0; i < disk->count; i++)
        volume_write_purges(disk->volumes[i], slice_make(text, length), disk->purges.floor,
                            purge_log_newest(&disk->purges));
    free(text);
    pthread_mutex_unlock(&disk->purging);
}

void disk_flush(struct disk *disk) {
    for (size_t i = 0; disk != NULL && i < disk->count; i++)
        volume_flush(disk->volumes[i]);
}

bool disk_has(struct disk *disk, struct cache_key key) {
    struct disk_place place;
    for (size_t i = 0; disk != NULL && i < disk->count; i++)
        if (disk_index_find(disk->volumes[i]->index, key.low, &place, 1) > 0)
            return true;
    return false;
}

/* Reading. */

enum outcome { READ_DONE, READ_LATER };

/* A record of the key at some place, being read. */
struct reading {
    struct volume *volume;
    struct disk_place place;
    uint64_t sequence;
    uint64_t key; /* its low half */
    char *bytes;
    size_t length; /* of bytes */
};

/* The whole record if it is small, else what its front should fit in. */
static size_t first_length(const struct disk_place *place) {
    size_t whole = (size_t)place->blocks * RECORD_ALIGN;
    return whole <= DISK_SMALL + FRONT_FIRST ? whole : FRONT_FIRST;
}

/* False: it must be read by somebody who may wait; or, when the caller may, it can't be read. */
static bool read_bytes(struct reading *reading, size_t length, enum volume_patience patience) {
    free(reading->bytes);
    reading->bytes = aligned_alloc(64, (length + 63) / 64 * 64);
    reading->length = length;
    return reading->bytes != NULL && volume_read(reading->volume, volume_offset(reading->place.at),
                                                 reading->bytes, length, patience);
}

static bool read_front(struct reading *reading, struct record *record,
                       enum volume_patience patience, bool *read) {
    enum record_verdict verdict = RECORD_SHORT;
    size_t length = first_length(&reading->place);
    *read = true;
    while (verdict == RECORD_SHORT) {
        *read = read_bytes(reading, length, patience);
        if (!*read)
            return false;
        verdict = record_read(record, slice_make(reading->bytes, length),
                              reading->volume->header.identity, reading->sequence);
        if (verdict == RECORD_SHORT &&
            (record->front_length <= length ||
             record->front_length > (size_t)reading->place.blocks * RECORD_ALIGN))
            return false;
        length = record->front_length;
    }
    return verdict == RECORD_GOOD;
}

static bool fits_its_place(const struct reading *reading, const struct record *record) {
    uint64_t length = record->front_length + record->front.body_length;
    return record_blocks(length) == reading->place.blocks && record->front.kind == RECORD_OBJECT &&
           record->front.key.low == reading->key;
}

static bool is_in_bytes(const struct reading *reading, const struct record *record) {
    return record->front_length + record->front.body_length <= reading->length;
}

static bool is_body_good(const struct reading *reading, const struct record *record) {
    const char *body = reading->bytes + record->front_length;
    uint64_t left = record->front.body_length;
    for (uint64_t i = 0; left > 0; i++) {
        size_t length = left < RECORD_CHUNK ? (size_t)left : RECORD_CHUNK;
        if (record_sum(body, length) != record->sums[i])
            return false;
        body += length;
        left -= length;
    }
    return true;
}

/* Of a small record from the bytes; a large one keeps the pin for its body. */
static struct body *body_for(struct disk *disk, struct reading *reading,
                             const struct record *record, bool *pinned) {
    if (!is_in_bytes(reading, record)) {
        *pinned = false;
        return disk_body_new(reading->volume, disk->readers, &reading->place, record);
    }
    if (!is_body_good(reading, record))
        return NULL;
    return body_of_bytes(
        slice_make(reading->bytes + record->front_length, record->front.body_length));
}

static void report_bad(struct reading *reading, const char *what) {
    volume_report_bad(reading->volume, reading->key, &reading->place, what);
}

/* The object, unless a purge speaks against it. */
static struct object *finish_object(struct disk *disk, struct reading *reading,
                                    const struct record *record, struct body *body) {
    struct object *object = object_of(record, body);
    if (object == NULL) {
        report_bad(reading, "its head");
        return NULL;
    }
    switch (purge_log_judge(&disk->purges, object, record->front.events)) {
    case PURGE_NOTHING: break;
    case PURGE_STALE: object_set_lifetime(object, 0, time(NULL)); break;
    case PURGE_REMOVE:
        disk_index_remove_place(reading->volume->index, reading->key, reading->place.at);
        object_release(&object);
        return NULL;
    }
    disk_index_mark(reading->volume->index, reading->key, reading->place.at);
    return object;
}

static enum outcome read_pinned(struct disk *disk, struct reading *reading,
                                enum volume_patience patience, struct object **objectp,
                                bool *pinned) {
    struct record record;
    bool read;
    if (!read_front(reading, &record, patience, &read)) {
        if (!read && patience == VOLUME_AT_ONCE)
            return READ_LATER;
        if (read)
            report_bad(reading, "its head");
        else
            disk_index_remove_place(reading->volume->index, reading->key, reading->place.at);
        return READ_DONE;
    }
    if (!fits_its_place(reading, &record)) {
        report_bad(reading, "it is another one");
        return READ_DONE;
    }
    struct body *body = body_for(disk, reading, &record, pinned);
    if (body == NULL) {
        report_bad(reading, "its body");
        return READ_DONE;
    }
    *objectp = finish_object(disk, reading, &record, body);
    body_release(&body);
    return READ_DONE;
}

static enum outcome read_object(struct disk *disk, struct volume *volume,
                                const struct disk_place *place, uint64_t key,
                                enum volume_patience patience, struct object **objectp) {
    struct reading reading = {.volume = volume, .place = *place, .key = key};
    bool pinned = volume_pin(volume, place, &reading.sequence);
    *objectp = NULL;
    if (!pinned)
        return READ_DONE;
    enum outcome outcome = read_pinned(disk, &reading, patience, objectp, &pinned);
    if (pinned)
        volume_unpin(volume, place);
    free(reading.bytes);
    return outcome;
}

/* Loading. */

struct disk_load {
    struct reader_job job;
    struct message message;
    unsigned magic;
#define DISK_LOAD_MAGIC 0xd15c10adu
    struct disk *disk;
    struct cache_key key;
    struct cache_arrival arrival;
    struct mailbox *mailbox;
    struct task *task; /* NULL: nobody waits any more */
    bool done, abandoned;
    unsigned found;
};

/* Everything there is under the key. False: with VOLUME_AT_ONCE not possible. */
static bool load_all(struct disk_load *load, enum volume_patience patience) {
    struct disk *disk = load->disk;
    struct disk_place places[VARIANTS_MAX];
    for (size_t i = 0; i < disk->count; i++) {
        struct volume *volume = disk->volumes[i];
        unsigned count = disk_index_find(volume->index, load->key.low, places, VARIANTS_MAX);
        for (unsigned j = 0; j < count; j++) {
            struct object *object;
            if (read_object(disk, volume, &places[j], load->key.low, patience, &object) ==
                READ_LATER)
                return false;
            if (object != NULL && object->key.high == load->key.high)
                load->found += cache_insert(disk->cache, object, &load->arrival);
            object_release(&object);
        }
    }
    return true;
}

static void on_loaded(struct message *message) {
    struct disk_load *load = CONTAINER_OF(message, struct disk_load, message);
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    load->done = true;
    if (load->abandoned)
        FREE_OBJ(load);
    else
        loop_defer(load->mailbox->loop, load->task);
}

static void load_patiently(struct reader_job *job) {
    struct disk_load *load = CONTAINER_OF(job, struct disk_load, job);
    load_all(load, VOLUME_MAY_WAIT);
    load->message.deliver = on_loaded;
    mailbox_post(load->mailbox, &load->message);
}

static struct disk_load *load_new(struct disk *disk, struct cache_key key) {
    struct disk_load *load;
    ALLOC_OBJ(load, DISK_LOAD_MAGIC);
    load->disk = disk;
    load->key = key;
    load->arrival.since = cache_now(disk->cache);
    load->arrival.yields = true;
    return load;
}

struct disk_load *disk_load_start(struct disk *disk, struct cache_key key, struct mailbox *mailbox,
                                  struct task *task) {
    if (!disk_has(disk, key))
        return NULL;
    CHECK_OBJ(disk, DISK_MAGIC);
    struct disk_load *load = load_new(disk, key);
    load->mailbox = mailbox;
    load->task = task;
    load->job.run = load_patiently;
    load->done = load_all(load, VOLUME_AT_ONCE);
    if (!load->done)
        readers_submit(disk->readers, &load->job);
    return load;
}

bool disk_load_is_done(const struct disk_load *load) {
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    return load->done;
}

unsigned disk_load_end(struct disk_load **loadp) {
    struct disk_load *load = *loadp;
    *loadp = NULL;
    if (load == NULL)
        return 0;
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    load->abandoned = true; /* its message, if that is still to come, frees it */
    if (!load->done)
        return 0;
    unsigned found = load->found;
    FREE_OBJ(load);
    return found;
}

unsigned disk_load_now(struct disk *disk, struct cache_key key) {
    if (!disk_has(disk, key))
        return 0;
    struct disk_load *load = load_new(disk, key);
    load->done = load_all(load, VOLUME_MAY_WAIT);
    return disk_load_end(&load);
}

unsigned disk_walk(struct disk *disk, struct disk_walk *walk, struct object **objects,
                   unsigned most) {
    unsigned found = 0;
    while (disk != NULL && found < most && walk->volume < disk->count) {
        struct volume *volume = disk->volumes[walk->volume];
        struct disk_place place;
        uint64_t key;
        if (disk_index_walk(volume->index, &walk->position, &key, &place, 1) == 0) {
            walk->volume++;
            walk->position = 0;
            continue;
        }
        read_object(disk, volume, &place, key, VOLUME_MAY_WAIT, &objects[found]);
        found += objects[found] != NULL;
    }
    return found;
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
