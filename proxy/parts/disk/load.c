#include "base/assert.h"
#include "disk/admission_filter.h"
#include "disk/disk.h"
#include "disk/reading.h"

#include <stdlib.h>

/* How bytes are read: at once or not at all; by a thread that may wait; later by another thread. */
enum load_mode { LOAD_AT_ONCE, LOAD_WAITING, LOAD_LATER };

enum { COUNT_OF_PLACES = 2 * DISK_VARIANTS };

/* A record that was read to renew another one. */
struct renewal {
    struct renewal *next;
    struct body_held *held;
    struct record record; /* its texts stand in there */
    struct volume *volume;
    struct disk_place place;
    bool used;
};

struct load_place {
    struct volume *volume;
    struct disk_place place;
};

struct disk_load {
    struct second_level_load base;
    unsigned magic;
#define DISK_LOAD_MAGIC 0xd15c10adu
    struct disk *disk;
    struct cache_name name; /* its URL is owned */
    struct cache_arrival arrival;
    enum load_mode mode;
    struct load_place places[COUNT_OF_PLACES]; /* what renews others first */
    unsigned count, at;
    bool promotes; /* small ones become the memory cache's */
    bool begun;    /* reading is of the one `at` */
    struct reading reading;
    struct disk_read read;
    struct renewal *renewals;
    unsigned found;
    struct found {
        struct object *object;
        struct volume *volume;
        uint64_t order; /* see record_order */
        uint32_t at;
        bool whole;       /* it may be used without being in memory */
    } all[DISK_VARIANTS]; /* the newest first, once all are there */
    /* for the one who waits */
    struct message message;
    struct mailbox *mailbox;
    struct task *task;
    bool done, abandoned;
};

/* Adds places to the `count` that are already there, and returns the new number. */
static unsigned collect_some(struct volume *volume, const struct disk_place *found,
                             unsigned found_count, bool renewals, struct load_place *places,
                             unsigned count) {
    for (unsigned i = 0; i < found_count && count < COUNT_OF_PLACES; i++)
        if (((found[i].variant & DISK_RENEWAL) != 0) == renewals)
            places[count++] = (struct load_place){volume, found[i]};
    return count;
}

static unsigned collect_places(struct disk *disk, struct cache_key key, struct load_place *places) {
    struct disk_place found[COUNT_OF_PLACES];
    unsigned count = 0;
    for (size_t i = 0; i < disk->count; i++) {
        struct volume *volume = disk->volumes[i];
        unsigned number = disk_index_find(volume->index, key.low, found, COUNT_OF_PLACES);
        count = collect_some(volume, found, number, true, places, count);
        count = collect_some(volume, found, number, false, places, count);
    }
    return count;
}

/* Memory is for objects that are requested again soon. Objects that a crawler requests once must
 * not displace them. */
static bool is_promoted(const struct disk_load *load) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < load->count; i++)
        bytes += (uint64_t)load->places[i].place.blocks * RECORD_ALIGN;
    return load->mode == LOAD_WAITING || cache_has_room(load->disk->cache, bytes) ||
           admission_filter_has_seen(load->disk->recent, load->name.key, bytes);
}

static struct disk_load *load_new(struct disk *disk, const struct cache_name *name,
                                  enum load_mode mode) {
    struct load_place places[COUNT_OF_PLACES];
    /* This comes first: an object that is removed from now on must not enter memory. */
    struct cache_moment since = cache_now(disk->cache);
    unsigned count = collect_places(disk, name->key, places);
    if (count == 0)
        return NULL;
    /* A request can do without the object, but a call of an operator can not. */
    struct disk_load *load =
        mode == LOAD_AT_ONCE ? calloc(1, sizeof *load) : xcalloc(1, sizeof *load);
    if (load == NULL)
        return NULL;
    load->base.class = disk->base.class;
    load->magic = DISK_LOAD_MAGIC;
    memcpy(load->places, places, count * sizeof *places);
    load->count = count;
    load->disk = disk;
    load->name = (struct cache_name){.url = slice_make(slice_dup(name->url), name->url.length),
                                     .key = name->key};
    load->mode = mode;
    load->arrival.since = since;
    load->arrival.yields = true;
    load->promotes = is_promoted(load);
    return load;
}

/* Returns false when the bytes are being read; the thread that reads them continues the load. */
static bool get_bytes(struct disk_load *load) {
    struct reading *reading = &load->reading;
    bool waiting = load->mode == LOAD_WAITING;
    if (load->mode != LOAD_LATER) {
        bool good = volume_read(reading->volume, reading->offset, reading->bytes, reading->length,
                                waiting ? VOLUME_MAY_WAIT : VOLUME_AT_ONCE);
        if (good || waiting) {
            reading_got(reading, good);
            return true;
        }
    }
    load->mode = LOAD_LATER;
    load->read.fd = reading->volume->fd;
    load->read.offset = reading->offset;
    load->read.bytes = reading->bytes;
    load->read.length = reading->length;
    reads_submit(load->disk->reads, &load->read);
    return false;
}

static void keep_renewal(struct disk_load *load) {
    struct reading *reading = &load->reading;
    struct renewal *renewal = xcalloc(1, sizeof *renewal);
    renewal->next = load->renewals;
    renewal->held = reading->held;
    renewal->record = reading->record;
    renewal->volume = reading->volume;
    renewal->place = reading->place;
    load->renewals = renewal;
    volume_unpin(reading->volume, &reading->place);
}

/* NULL: there is none. */
static const struct record *find_renewal(struct disk_load *load) {
    for (struct renewal *renewal = load->renewals; renewal != NULL; renewal = renewal->next)
        if (reading_is_renewed(&load->reading, &renewal->record)) {
            renewal->used = true;
            disk_index_mark(load->reading.volume->index, load->name.key.low, renewal->place.at);
            return &renewal->record;
        }
    return NULL;
}

/* Removes renewals whose variant is gone. */
static void free_renewals(struct disk_load *load) {
    while (load->renewals != NULL) {
        struct renewal *renewal = load->renewals;
        load->renewals = renewal->next;
        if (!renewal->used)
            disk_index_remove_place(renewal->volume->index, load->name.key.low, renewal->place.at);
        body_held_free(&renewal->held);
        free(renewal);
    }
}

static void end_one(struct disk_load *load) {
    if (reading_is_renewal(&load->reading)) {
        keep_renewal(load);
        return;
    }
    load->reading.cached = !load->promotes && load->mode == LOAD_AT_ONCE;
    const struct record *renewal = load->renewals == NULL ? NULL : find_renewal(load);
    const struct record_front *newest = &(renewal != NULL ? renewal : &load->reading.record)->front;
    struct object *object =
        reading_end(&load->reading, load->disk->reads, &load->disk->purges, renewal);
    if (object != NULL && object_has_name(object, &load->name) && load->found < DISK_VARIANTS)
        load->all[load->found++] = (struct found){
            .object = object,
            .volume = load->reading.volume,
            .order = record_order(newest),
            .at = load->reading.place.at,
            .whole = load->reading.whole,
        };
    else
        object_release(&object);
}

static int disk_load_newest_first(const void *left, const void *right) {
    const struct found *a = left, *b = right;
    return (a->order < b->order) - (a->order > b->order);
}

/* A newer object first enters memory and then hides this one in the index. So either memory has
 * refused this one, or it is removed here, or the thread that hides it removes it. */
static bool promote(struct disk_load *load, const struct found *found) {
    struct cache *cache = load->disk->cache;
    if (!cache_insert(cache, found->object, &load->arrival))
        return false;
    if (disk_index_has_place(found->volume->index, load->name.key.low, found->at))
        return true;
    cache_remove(cache, found->object);
    return false;
}

/* Inserts the object into the memory cache. Large objects are always inserted, so that other
 * requests share the state of their bodies. An object that memory refuses is useless: it was
 * removed, or a newer one is there. */
static void promote_all(struct disk_load *load) {
    unsigned kept = 0;
    if (load->found > 1)
        qsort(load->all, load->found, sizeof load->all[0], disk_load_newest_first);
    for (unsigned i = 0; i < load->found; i++)
        if ((!load->promotes && load->all[i].whole) || promote(load, &load->all[i]))
            load->all[kept++] = load->all[i];
        else
            object_release(&load->all[i].object);
    load->found = kept;
}

/* False: not now, see get_bytes. */
static bool load_all(struct disk_load *load) {
    for (; load->at < load->count; load->at++) {
        if (!load->begun && !reading_begin(&load->reading, load->places[load->at].volume,
                                           &load->places[load->at].place, load->name.key.low))
            continue;
        load->begun = true;
        while (reading_wants(&load->reading))
            if (!get_bytes(load))
                return false;
        load->begun = false;
        end_one(load);
    }
    free_renewals(load);
    promote_all(load);
    return true;
}

static void load_free(struct disk_load *load) {
    for (unsigned i = 0; i < load->found; i++)
        object_release(&load->all[i].object);
    free((char *)load->name.url.base);
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

static void disk_load_on_read(struct disk_read *read) {
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

struct second_level_load *disk_load_start(struct second_level *level, const struct cache_name *name,
                                          struct mailbox *mailbox, struct task *task) {
    struct disk_load *load = load_new(disk_of(level), name, LOAD_AT_ONCE);
    if (load == NULL)
        return NULL;
    load->mailbox = mailbox;
    load->task = task;
    load->read.done = disk_load_on_read;
    /* When the load is not done, the thread that reads the bytes may already be using it. */
    if (load_all(load))
        load->done = true;
    return &load->base;
}

static const struct disk_load *load_of(const struct second_level_load *base) {
    const struct disk_load *load = CONTAINER_OF(base, const struct disk_load, base);
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    return load;
}

bool disk_load_is_done(const struct second_level_load *base) {
    return load_of(base)->done;
}

struct object *disk_load_take(const struct second_level_load *base, const struct http_head *request,
                              enum object_scope scope) {
    const struct disk_load *load = load_of(base);
    ASSERT(load->done);
    for (unsigned i = 0; i < load->found; i++)
        if (object_matches(load->all[i].object, request, scope))
            return object_reference(load->all[i].object);
    return NULL;
}

void disk_load_end(struct second_level_load *base) {
    struct disk_load *load = CONTAINER_OF(base, struct disk_load, base);
    CHECK_OBJ(load, DISK_LOAD_MAGIC);
    load->abandoned = true; /* its message frees it if it has not arrived yet */
    if (load->done)
        load_free(load);
}

unsigned disk_load_now(struct second_level *level, const struct cache_name *name) {
    struct disk_load *load = load_new(disk_of(level), name, LOAD_WAITING);
    if (load == NULL)
        return 0;
    load_all(load);
    unsigned found = load->found;
    load_free(load);
    return found;
}

/* False: there is none. */
static bool find_next_place(const struct disk *disk, struct second_level_walk *walk, uint64_t *key,
                            struct disk_place *place) {
    for (; walk->volume < disk->count; walk->volume++, walk->position = 0)
        if (disk_index_walk(disk->volumes[walk->volume]->index, &walk->position, key, place, 1) > 0)
            return true;
    return false;
}

struct object *disk_walk(struct second_level *level, struct second_level_walk *walk) {
    struct disk *disk = disk_of(level);
    struct disk_place place;
    struct reading reading;
    uint64_t key;
    walk->over = !find_next_place(disk, walk, &key, &place);
    if (walk->over || !reading_begin(&reading, disk->volumes[walk->volume], &place, key))
        return NULL;
    while (reading_wants(&reading))
        reading_got(&reading, volume_read(disk->volumes[walk->volume], reading.offset,
                                          reading.bytes, reading.length, VOLUME_MAY_WAIT));
    return reading_end(&reading, disk->reads, &disk->purges, NULL);
}
