/*
 * The cache on disk, a second level of the cache (cache/second_level.h). Stored objects are also written to a volume. They
 * are found there after memory has evicted them, and after a restart.
 *
 *     struct second_level *level = disk_open(settings, cache, false, error);
 *
 * A small object is read whole and verified for the request. It is also inserted into the memory cache if there is room, or
 * if it was read before within the time that memory covers. A large object enters the memory cache with its head only; its
 * body is sent from the volume (disk_body.h). Objects are distributed over the volumes by their key, in proportion to the
 * sizes.
 *
 * Threads: any.
 */
#ifndef RETORT_DISK_DISK_H
#define RETORT_DISK_DISK_H

#include "base/assert.h"
#include "cache/second_level.h"
#include "disk/purge_log.h"
#include "disk/purge_writer.h"
#include "disk/reads.h"
#include "disk/volume.h"

/* Returns NULL with an empty error when the settings have no disk. The disk keeps the settings. Call it before the first key
 * is made, because it sets the secret of keys (cache/name.h) to that of the volumes. `taken`: the volumes are those that
 * another process has lent (disk/lending.h), or that it had when it was killed. */
struct second_level *disk_open(struct settings *settings, struct cache *cache, bool taken,
                               char error[SETTINGS_ERROR]);

/* Inside disk/. */
struct disk {
    struct second_level base;
    unsigned magic;
#define DISK_MAGIC 0xd15cd15cu
    struct settings *settings; /* referenced */
    struct cache *cache;
    struct reads *reads;
    struct purge_log purges;
    struct purge_writer writer;
    struct admission_filter *admission; /* NULL: no volume asks for it */
    struct admission_filter *recent;    /* keys that were read within the time that memory covers */
    _Atomic uint64_t next_serial;       /* of records on all volumes */
    size_t count;
    struct volume *volumes[];
};

static inline struct disk *disk_of(struct second_level *level) {
    struct disk *disk = CONTAINER_OF(level, struct disk, base);
    CHECK_OBJ(disk, DISK_MAGIC);
    return disk;
}

/* load.c: see cache/second_level.h. */
struct second_level_load *disk_load_start(struct second_level *level, const struct cache_name *name,
                                          struct mailbox *mailbox, struct task *task);
bool disk_load_is_done(const struct second_level_load *base);
struct object *disk_load_take(const struct second_level_load *base, const struct http_head *request,
                              enum object_scope scope);
void disk_load_end(struct second_level_load *base);
unsigned disk_load_now(struct second_level *level, const struct cache_name *name);
struct object *disk_walk(struct second_level *level, struct second_level_walk *walk);

#endif
