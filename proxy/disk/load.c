#include "base/assert.h"
#include "disk/disk.h"
#include "disk/doorkeeper.h"
#include "disk/reading.h"

/* How the bytes come: at once or not at all; by whoever may wait; later, by another thread. */
enum patience { LOAD_AT_ONCE, LOAD_WAITING, LOAD_LATER };

struct disk_load {
    unsigned magic;
#define DISK_LOAD_MAGIC 0xd15c10adu
    struct disk *disk;
    struct cache_key key;
    struct cache_arrival arrival;
    enum patience patience;
    struct {
        struct volume *volume;
        struct disk_place place;
    } places[DISK_VARIANTS];
    unsigned count, at;
    bool promotes; /* small ones become the memory cache's */
    bool begun;    /* reading is of the one `at` */
    struct reading reading;
    struct disk_read read;
    unsigned found;
    struct object *objects[DISK_VARIANTS];
    /* for the one who waits */
    struct message message;
    struct mailbox *mailbox;
    struct task *task;
    bool done, abandoned;
};

static void collect_places(struct disk_load *load) {
    struct disk *disk = load->disk;
    struct disk_place places[DISK_VARIANTS];
    for (size_t i = 0; i < disk->count; i++) {
        unsigned count = disk_index_find(disk->volumes[i]->index, load->key.low, places,
                                         DISK_VARIANTS - load->count);
        for (unsigned j = 0; j < count; j++) {
            load->places[load->count].volume = disk->volumes[i];
            load->places[load->count++].place = places[j];
        }
    }
}

/* Memory is for what is asked for again soon: what is asked for once, as by a crawler, would take
 * the place of that. */
static bool is_promoted(const struct disk_load *load) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < load->count; i++)
        bytes += (uint64_t)load->places[i].place.blocks * RECORD_ALIGN;
    return load->patience == LOAD_WAITING || cache_has_room(load->disk->cache, bytes) ||
           doorkeeper_has_seen(load->disk->recent, load->key, bytes);
}

static struct disk_load *load_new(struct disk *disk, struct cache_key key, enum patience patience) {
    struct disk_load *load;
    if (!disk_has(disk, key))
        return NULL;
    ALLOC_OBJ(load, DISK_LOAD_MAGIC);
    load->disk = disk;
    load->key = key;
    load->patience = patience;
    load->arrival.since = cache_now(disk->cache);
    load->arrival.yields = true;
    collect_places(load);
    load->promotes = is_promoted(load);
    return load;
}

/* False: it is on its way, and whoever brings it goes on from there. */
static bool get_bytes(struct disk_load *load) {
    struct reading *reading = &load->reading;
    bool waiting = load->patience == LOAD_WAITING;
    if (load->patience != LOAD_LATER) {
        bool good = volume_read(reading->volume, reading->offset, reading->bytes, reading->length,
                                waiting ? VOLUME_MAY_WAIT : VOLUME_AT_ONCE);
        if (good || waiting) {
            reading_got(reading, good);
            return true;
        }
    }
    load->patience = LOAD_LATER;
    load->read.fd = reading->volume->fd;
    load->read.offset = reading->offset;
    load->read.bytes = reading->bytes;
    load->read.length = reading->length;
    reads_submit(load->disk->reads, &load->read);
    return false;
}

/* At hand for whoever asked, and into the memory cache. Large ones always: what is known of their
 * bodies is then there for others. */
static void end_one(struct disk_load *load) {
    struct object *object = reading_end(&load->reading, load->disk->reads, &load->disk->purges);
    if (object != NULL && object->key.high == load->key.high &&
        ((!load->promotes && object->body->kind == BODY_HELD) ||
         cache_insert(load->disk->cache, object, &load->arrival)))
        load->objects[load->found++] = object;
    else
        object_release(&object);
}

/* False: not now, see get_bytes. */
static bool load_all(struct disk_load *load) {
    for (; load->at < load->count; load->at++) {
        if (!load->begun && !reading_begin(&load->reading, load->places[load->at].volume,
                                           &load->places[load->at].place, load->key.low))
            continue;
        load->begun = true;
        while (reading_wants(&load->reading))
            if (!get_bytes(load))
                return false;
        load->begun = false;
        end_one(load);
    }
    return true;
}

static void load_free(struct disk_load *load) {
    for (unsigned i = 0; i < load->found; i++)
        object_release(&load->objects[i]);
    FREE_OBJ(load);
}

static void on_loaded(struct message *message) {
    struct disk_load *load = CONTAINER_OF(message, struct disk_load, message);
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    load->done = true;
    if (load->abandoned)
        load_free(load);
    else
        loop_defer(load->mailbox->loop, load->task);
}

static void on_read(struct disk_read *read) {
    struct disk_load *load = CONTAINER_OF(read, struct disk_load, read);
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    if (read->error != 0)
        volume_report_read_error(load->reading.volume, read->offset + read->got, read->error);
    reading_got(&load->reading, read->error == 0);
    if (!load_all(load))
        return;
    load->message.deliver = on_loaded;
    mailbox_post(load->mailbox, &load->message);
}

struct disk_load *disk_load_start(struct disk *disk, struct cache_key key, struct mailbox *mailbox,
                                  struct task *task) {
    struct disk_load *load = load_new(disk, key, LOAD_AT_ONCE);
    if (load == NULL)
        return NULL;
    load->mailbox = mailbox;
    load->task = task;
    load->read.done = on_read;
    /* When it is not done, the thread that brings the bytes may be at it already. */
    if (load_all(load))
        load->done = true;
    return load;
}

bool disk_load_is_done(const struct disk_load *load) {
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    return load->done;
}

struct object *disk_load_take(const struct disk_load *load, const struct http_head *request,
                              enum object_scope scope) {
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    ASSERT(load->done);
    for (unsigned i = 0; i < load->found; i++)
        if (object_matches(load->objects[i], request, scope))
            return object_reference(load->objects[i]);
    return NULL;
}

void disk_load_end(struct disk_load **loadp) {
    struct disk_load *load = *loadp;
    *loadp = NULL;
    if (load == NULL)
        return;
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    load->abandoned = true; /* its message, if that is still to come, frees it */
    if (load->done)
        load_free(load);
}

unsigned disk_load_now(struct disk *disk, struct cache_key key) {
    struct disk_load *load = load_new(disk, key, LOAD_WAITING);
    if (load == NULL)
        return 0;
    load->done = load_all(load);
    unsigned found = load->found;
    disk_load_end(&load);
    return found;
}

unsigned disk_walk(struct disk *disk, struct disk_walk *walk, struct object **objects,
                   unsigned most) {
    unsigned found = 0;
    while (disk != NULL && found < most && walk->volume < disk->count) {
        struct volume *volume = disk->volumes[walk->volume];
        struct disk_place place;
        struct reading reading;
        uint64_t key;
        if (disk_index_walk(volume->index, &walk->position, &key, &place, 1) == 0) {
            walk->volume++;
            walk->position = 0;
            continue;
        }
        if (!reading_begin(&reading, volume, &place, key))
            continue;
        while (reading_wants(&reading))
            reading_got(&reading, volume_read(volume, reading.offset, reading.bytes, reading.length,
                                              VOLUME_MAY_WAIT));
        objects[found] = reading_end(&reading, disk->reads, &disk->purges);
        found += objects[found] != NULL;
    }
    return found;
}
