/*
 * The cache on disk. Stored objects are also written to a volume. They are found there after memory
 * has evicted them, and after a restart.
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
 * A small object is read whole and verified for the request. It is also inserted into the memory
 * cache if there is room, or if it was read before within the time that memory covers. A large
 * object enters the memory cache with its head only; its body is sent from the volume
 * (disk_body.h). Objects are distributed over the volumes by their key, in proportion to the sizes.
 *
 * When several operations concern one object at the same time, the disk must agree with memory.
 * Store the object first, and then check that it is still in the memory cache. Remove it from
 * memory first, and then from disk.
 *
 * Threads: any. When disk is NULL, there is no disk and every function does nothing.
 */
#ifndef RETORT_DISK_DISK_H
#define RETORT_DISK_DISK_H

#include "cache/store.h"
#include "disk/purge_log.h"
#include "disk/purge_writer.h"
#include "disk/reads.h"
#include "disk/volume.h"

struct disk;

/* Returns NULL with an empty error when the settings have no disk. The disk keeps the settings.
 * Call it before the first key is made, because it sets the secret of keys (cache/name.h) to
 * that of the volumes. */
struct disk *disk_open(struct settings *settings, struct cache *cache, char error[SETTINGS_ERROR]);
/* Does the same with volumes that another process has lent (disk/lending.h), or that it had when it
 * was killed. */
struct disk *disk_take(struct settings *settings, struct cache *cache, char error[SETTINGS_ERROR]);
void disk_stop(struct disk *disk);
void disk_close(struct disk **diskp);

/* The number of the newest purge. Note it before the origin is asked. */
struct disk_moment {
    uint64_t purges;
    struct cache_moment memory;
};

struct disk_moment disk_now(const struct disk *disk);
void disk_store(struct disk *disk, struct object *object, const struct disk_moment *since);
/* Stores an object for the operator, without the admission filter. */
void disk_inject(struct disk *disk, struct object *object, const struct disk_moment *since);
/* Removes the objects that this one would replace, after they were removed from memory. */
void disk_supersede(struct disk *disk, const struct object *object);
/* Removes one object, or all variants when object is NULL. Call it after they were removed from
 * memory. An object that is being read from disk at that moment does not return to memory. */
unsigned disk_remove(struct disk *disk, const struct cache_name *name, const struct object *object);
/* Removes all variants and always writes a record of the removal, because an operator is told
 * that they are gone. */
unsigned disk_remove_surely(struct disk *disk, const struct cache_name *name);
/* Does the same for an object that will be written again; memory keeps it. */
unsigned disk_forget(struct disk *disk, const struct cache_name *name);
/* Returns false when the purge is in force but a volume could not write it, so a restart would
 * undo it. */
bool disk_purge(struct disk *disk, const struct object_filter *filter, enum purge_action action);
/* Stores how often a service has been bumped, so that its older results stay outdated after a
 * restart (adapt/service_tag.h). `service` is its number there. Returns false as above. */
bool disk_keep_generation(struct disk *disk, uint64_t service, uint64_t generation);
/* 0: never */
uint64_t disk_kept_generation(struct disk *disk, uint64_t service);
/* Waits until all earlier operations are written, and are on the devices where `sync` is set.
 * Returns false when a device has failed. */
bool disk_commit(struct disk *disk);
/* Returns true when this object, or a newer one in its place, has been written. */
bool disk_has_object(struct disk *disk, const struct object *object);
/* Returns true when an object is hidden now but may be found again after a restart. */
bool disk_has_lost(const struct disk *disk);
/* Counts removals and new heads that could not be written, so that a restart undoes them. When
 * the number after a flush is larger than before an operation, this operation or one at the same
 * time has failed. */
uint64_t disk_lapses(const struct disk *disk);

/* Starts to load the objects with this name. Those that are worth it enter the memory cache. */
struct disk_load;
struct disk_load *disk_load_start(struct disk *disk, const struct cache_name *name,
                                  struct mailbox *mailbox, struct task *task);
bool disk_load_is_done(const struct disk_load *load);
/* Returns the object for this request with a reference, or NULL. It need not be in the memory
 * cache. Call it when the load is done. */
struct object *disk_load_take(const struct disk_load *load, const struct http_head *request,
                              enum object_scope scope);
/* May be called at any time. NULL does nothing. */
void disk_load_end(struct disk_load **loadp);
/* For threads that may wait: loads all objects with this name into the memory cache. Returns
 * their number. */
unsigned disk_load_now(struct disk *disk, const struct cache_name *name);

/* For bodies that are too large for memory; see volume_stream_open. Returns NULL when the disk
 * does not store the body. */
struct volume_stream *disk_stream_open(struct disk *disk, struct object *object,
                                       uint64_t body_length, const struct disk_moment *since);

/* Walks over the objects on disk, one at a time. */
struct disk_walk {
    uint64_t position;
    unsigned volume;
    bool over; /* there is no further object; set by disk_walk */
};

/* Reads the next object from disk, without its body. NULL: the walk is over, or this object is
 * none any more. May wait for the disk. */
struct object *disk_walk(struct disk *disk, struct disk_walk *walk);
/* Returns true when the disk has an object with this key. The name is not compared. */
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
    struct admission_filter *recent;    /* keys that were read within the time that memory covers */
    size_t count;
    struct volume *volumes[];
};

#endif
