/*
 * The cache on disk: what was stored is written to a volume too, found again when memory has let it
 * go, and after a restart.
 *
 *     struct disk *disk = disk_open(settings, cache, error);
 *     struct disk_moment since = disk_now(disk);         before the origin is asked
 *     disk_store(disk, object, &since);                  complete, and in the memory cache
 *
 *     load = disk_load_start(disk, &name, mailbox, task);    NULL: nothing is there
 *     if (!disk_load_is_done(load)) ...                      the task will run
 *     object = disk_load_take(load, &request, scope);
 *     disk_load_end(&load);
 *
 *     disk_remove(disk, &name, NULL);                    follows removals from the memory cache
 *     disk_purge(disk, &filter, PURGE_REMOVE);
 *     disk_stop(disk);                                   what is queued is written
 *     disk_close(&disk);                                 after the memory cache has gone
 *
 * A small object is read whole, verified, and is for those who asked; it becomes one of the memory
 * cache's too if there is room, or if it was read before, not longer ago than what memory holds. Of
 * a large one the head becomes one of the memory cache's, with a body that is sent from the volume
 * (disk_body.h). Objects are spread over the volumes by their key, in the proportion of the sizes.
 *
 * Where several things happen to one object at the same time the disk must not know better than
 * memory: store first and then look whether the object is still in the memory cache; remove from
 * memory and then from disk.
 *
 * Threads: any. disk NULL: there is none, and every function does nothing.
 */
#ifndef RETORT_DISK_DISK_H
#define RETORT_DISK_DISK_H

#include "cache/store.h"
#include "disk/purge_log.h"
#include "disk/purge_writer.h"
#include "disk/reads.h"
#include "disk/volume.h"

struct disk;

/* NULL and an empty error: the settings name no disk. They are kept. Before the first key is made:
 * the secret of keys (cache/name.h) becomes the volumes'. */
struct disk *disk_open(struct settings *settings, struct cache *cache, char error[SETTINGS_ERROR]);
void disk_stop(struct disk *disk);
void disk_close(struct disk **diskp);

/* How far purges have come: to be noted before the origin is asked. */
struct disk_moment {
    uint64_t purges;
    struct cache_moment memory;
};

struct disk_moment disk_now(const struct disk *disk);
void disk_store(struct disk *disk, struct object *object, const struct disk_moment *since);
/* By an operator's word: asked for twice or not. */
void disk_inject(struct disk *disk, struct object *object, const struct disk_moment *since);
/* Removes what the object would take the place of, after that was removed from memory. */
void disk_supersede(struct disk *disk, const struct object *object);
/* object NULL: all variants. After they were removed from memory; what is read from disk at that
 * moment does not come back there. */
unsigned disk_remove(struct disk *disk, const struct cache_name *name, const struct object *object);
/* All variants, and in any case with a record of that, as an operator is told that they are gone.
 */
unsigned disk_remove_surely(struct disk *disk, const struct cache_name *name);
/* The same, for what is to stand there anew: memory keeps it. */
unsigned disk_forget(struct disk *disk, const struct cache_name *name);
/* False: it counts, but not after a restart, because a volume could not write it down. */
bool disk_purge(struct disk *disk, const struct object_filter *filter, enum purge_action action);
/* How often a service has been bumped, for what it has made to stay old (adapt/service_tag.h). `service` is
 * its number there. False: as above. */
bool disk_keep_generation(struct disk *disk, uint64_t service, uint64_t generation);
/* 0: never */
uint64_t disk_kept_generation(struct disk *disk, uint64_t service);
/* Waits until all that has happened so far is written, and is on the devices where `sync` is set.
 * False: a device has failed. */
bool disk_commit(struct disk *disk);
/* Is a record of this object, or of a newer one in its place, written? */
bool disk_has_object(struct disk *disk, const struct object *object);
/* Is there anything that is not found, though it may be again after a restart? */
bool disk_has_lost(const struct disk *disk);
/* How often a removal or a new head could not be written, so that a restart undoes it. One more
 * behind a flush than before what it was for: that, or what another did meanwhile. */
uint64_t disk_lapses(const struct disk *disk);

/* What is on disk under this name; what is worth it is brought into the memory cache. */
struct disk_load;
struct disk_load *disk_load_start(struct disk *disk, const struct cache_name *name,
                                  struct mailbox *mailbox, struct task *task);
bool disk_load_is_done(const struct disk_load *load);
/* What was found for this request, referenced: it need not be in memory. NULL: nothing. Once it is
 * done. */
struct object *disk_load_take(const struct disk_load *load, const struct http_head *request,
                              enum object_scope scope);
/* At any time; NULL does nothing. */
void disk_load_end(struct disk_load **loadp);
/* For threads that may wait: all of it into the memory cache; returns how many objects those were.
 */
unsigned disk_load_now(struct disk *disk, const struct cache_name *name);

/* Bodies that are too large for memory, see volume_stream_open; NULL: not wanted. */
struct volume_stream *disk_stream_open(struct disk *disk, struct object *object,
                                       uint64_t body_length, const struct disk_moment *since);

/* A walk over what is on disk: objects without bodies, `most` at a time. */
struct disk_walk {
    uint64_t position;
    unsigned volume;
};

unsigned disk_walk(struct disk *disk, struct disk_walk *walk, struct object **objects,
                   unsigned most);
/* Is anything with that key on disk? Its name is not looked at. */
bool disk_has(struct disk *disk, struct cache_key key);

void disk_statistics(struct disk *disk, struct volume_statistics *statistics);

/* Inside disk/. */
struct disk {
    unsigned magic;
#define DISK_MAGIC 0xd15cd15cu
    struct settings *settings; /* referenced */
    struct cache *cache;
    struct reads *reads;
    struct purge_log purges;
    struct purge_writer writer;
    struct admission_filter *admission; /* NULL: no volume asks for it */
    struct admission_filter *recent;    /* what was read, while memory would have held it */
    size_t count;
    struct volume *volumes[];
};

#endif
