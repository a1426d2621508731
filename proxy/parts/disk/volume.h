/*
 * A volume: one file or device, written as a log in a ring of segments by a thread of its own.
 *
 *     if (volume_read_secret(&settings, &secret)) cache_set_secret(&secret);
 *     struct volume *volume = volume_open(&settings, &hooks, error);      reads what is there
 *     volume_start(volume);
 *     volume_store(volume, object, variant, events);                      queues; never waits
 *     volume_remove(volume, key, variant);
 *
 *     struct disk_place place;
 *     if (volume_pin(volume, &place, &sequence)) {                        it can't be overwritten
 *         volume_read(volume, volume_offset(place.at), bytes, length, VOLUME_MAY_WAIT);
 *         volume_unpin(volume, &place);
 *     }
 *     volume_stop(volume);                                                writes what is queued
 *     volume_close(&volume);
 *
 * New records are written after the newest one. The next segment is always the oldest one. Its
 * records are removed, except those that were used since they were written; these are written
 * again, up to a quarter of a segment. A removal is a record too, so that a restart does not bring
 * removed objects back. It is newer than the records that it removes, so the ring reclaims it
 * later.
 *
 * A failed write loses its record: the segment is closed, and the log continues in the next one.
 * After several failures in a row nothing is written for a while. When more than
 * settings.write_queue bytes wait, further objects are not stored. All of this is counted.
 *
 * Threads: any. Locks: that of the queue, then that of a shard of the index, or those that hooks.keep
 * takes. No lock is held during a system call.
 */
#ifndef RETORT_DISK_VOLUME_H
#define RETORT_DISK_VOLUME_H

#include "base/threads.h"
#include "disk/index.h"
#include "disk/purge_log.h"
#include "disk/record.h"
#include "disk/settings.h"

#include <stdatomic.h>

#define VOLUME_NONE UINT32_MAX

struct absent_keys;
struct volume;

/* Functions that a volume calls from its thread. */
struct volume_hooks {
    void *arg;
    unsigned max_variants; /* variants of a key, at least 1 */
    /* Called when objects in memory with a body in this unit must be removed. */
    void (*leave)(void *arg, struct volume *volume, uint32_t segment);
    /* Returns true when a purge has made this record outdated. */
    bool (*outdated)(void *arg, const struct record *record);
    /* Returns true when memory has an object with this key that has been requested. */
    bool (*used)(void *arg, uint64_t key);
    /* Keeps the object in memory until `written`, when its record can be found. Returns false when it
     * is not in memory any more: it was removed, or a newer object has taken its place. Called with
     * the lock of the queue held, so that records of one name are queued in the order of memory. */
    bool (*keep)(void *arg, struct object *object);
    void (*written)(void *arg, struct object *object);
    /* The serial of the next record, on all volumes of the disk. */
    _Atomic uint64_t *next_serial;
    /* Another process lends the volume: wait for its lock, and never empty it. */
    bool taken;
};

struct volume_statistics {
    uint64_t objects, capacity, index_bytes;
    uint64_t writes, bytes_written, dropped, errors, corrupt, reclaimed, rewritten;
};

struct volume_segment {
    _Atomic uint64_t sequence; /* 0: nothing is in it */
    uint32_t run;  /* segments of the unit that begins here; 0: part of an earlier unit */
    uint32_t used; /* blocks, of the whole unit */
    _Atomic uint32_t pins;
    _Atomic bool leaving;
    struct list_link bodies; /* struct disk_body, under the volume's bodies_lock */
    bool streaming;          /* a body is being written into it */
    _Atomic bool sent;       /* bytes of it may be in sockets: segment.c, detach */
    bool uncleared;          /* an outdated header could not be cleared */
    _Atomic uint64_t oldest; /* the smallest purge number that its records were checked against */
};

/* The places of the purges on a volume. */
struct volume_purges {
    uint64_t generation; /* the newest of both areas */
    unsigned area;       /* 0, 1 */
    uint32_t used;       /* sectors of it */
    uint32_t first;      /* of these, when the generation began */
    bool broken;         /* nothing can be appended; the area must be written anew */
    bool damaged;        /* the other area's first sector is */
};

struct volume {
    unsigned magic;
#define VOLUME_MAGIC 0xd15cb0c5u
    char *path;
    int fd;
    const struct disk_settings *settings;
    struct volume_hooks hooks;
    struct volume_header header;
    struct disk_index *index;
    struct volume_segment *segments;
    pthread_mutex_t bodies_lock;
    bool copies; /* pages can't be detached, so data is copied before it is sent */
    char *map;   /* for asking which pages are in memory; NULL: impossible */
    struct volume_purges purges;
    /* the queue */
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct list_link jobs, streams;
    struct volume_job *current; /* the job that the writer works on */
    struct list_link rescued;
    size_t queued;          /* bytes */
    _Atomic size_t passing; /* bytes of streams that still wait; read without the lock */
    bool stopping;
    /* the writer's */
    struct thread thread;
    uint32_t hand, open_segment;
    uint64_t next_sequence;
    struct record_entry *contents; /* of the open segment */
    uint32_t contents_count, contents_capacity;
    size_t rescued_bytes;
    uint64_t gathered;          /* bytes of the queue that streams may take up: stream.h */
    unsigned failures;          /* in a row */
    uint64_t paused_until;      /* milliseconds of the monotonic clock */
    bool unsynced;              /* data was written since the last sync */
    uint64_t sync_due;          /* when the next sync is due, by volume_clock; 0: never */
    _Atomic uint64_t lapses;    /* see volume_lapses */
    _Atomic bool lost;          /* see volume_note_lost */
    _Atomic bool lent;          /* to another process: lending.h */
    struct absent_keys *absent; /* the writer's; NULL: the volume is not lent */
    struct {
        _Atomic uint64_t writes, bytes_written, dropped, errors, corrupt, reclaimed, rewritten;
    } count;
};

/* Is there something at the path? A start makes the file in a directory, and fills an empty file. */
bool volume_is_there(const struct disk_settings *settings, char error[SETTINGS_ERROR]);
/* Checks whether this user could open the volume, without creating anything. Returns false with
 * a message. */
bool volume_possible(const struct disk_settings *settings, char error[SETTINGS_ERROR]);
/* Could the file system ever have the size? What a start accepts, with a warning, is usually a slip. */
bool volume_fits(const struct disk_settings *settings, char error[SETTINGS_ERROR]);
/* Reads the secret of the volume's keys. Returns false when there is no volume yet, or an
 * unusable one. */
bool volume_read_secret(const struct disk_settings *settings, struct cache_secret *secret);
/* Returns NULL with a message after a failure. The settings must outlive the volume. Its objects
 * count only if they were written with the secret in use (cache/name.h), because otherwise no
 * key would match. */
struct volume *volume_open(const struct disk_settings *settings, const struct volume_hooks *hooks,
                           char error[SETTINGS_ERROR]);
/* Starts the writer. Before this call nothing is written. */
bool volume_start(struct volume *volume);
/* Writes the queued jobs and stops the writer. */
void volume_stop(struct volume *volume);
/* Call it when no body on the volume is in use any more. */
void volume_close(struct volume **volumep);

/* Stores an object that is complete and in memory, or whose head is new while its body is
 * already on the volume. From now on the objects that it replaces are hidden. Does nothing when
 * hooks.keep says that the object is not in memory any more. Returns false when it is not queued. */
bool volume_store(struct volume *volume, struct object *object, uint32_t variant, uint64_t events);
/* Removes a variant: from now on it is hidden, also if it is still being written. The record of
 * the removal follows. Returns the number of removed objects. */
unsigned volume_remove(struct volume *volume, struct cache_key key, uint32_t variant);
/* Removes all variants and always writes a record of the removal. Used when records can't be
 * read, or when a list of purges could not be written. */
unsigned volume_remove_surely(struct volume *volume, struct cache_key key);
/* Removes the objects that this one replaces, when it is stored elsewhere or not at all (RFC
 * 9111 §4). volume_leave_out does so only while the object is in memory, as volume_store. */
void volume_supersede(struct volume *volume, const struct object *object, uint32_t variant);
void volume_leave_out(struct volume *volume, struct object *object, uint32_t variant);
/* Waits until all earlier jobs have been written. */
void volume_flush(struct volume *volume);
/* Also waits until they are on the device, if settings.sync is set. Returns false when that
 * failed. */
bool volume_commit(struct volume *volume);
/* Counts removals and new heads that could not be written in any way, so that a restart undoes
 * them. After the first one, removals are written even if no object of the key is known. */
static inline uint64_t volume_lapses(const struct volume *volume) {
    return atomic_load_explicit(&volume->lapses, memory_order_relaxed);
}

/* The purges that concern records, for a restart: those that counted when the area in use was
 * begun, and behind them each that came since (disk/purge_log.h). One thread at a time.
 *
 *     if (!volume_append_purges(volume, &slots, floor, newest))
 *         volume_rewrite_purges(volume, &all_slots, floor, newest);    see volume_purges_room
 *     volume_sync_purges(volume);
 */
/* For a new volume, where an older one may have been before. */
bool volume_blank_purges(struct volume *volume);
/* Records whose purges could not be read count as purged (counted and logged). */
void volume_read_purges(struct volume *volume, struct purge_log *log);
/* Returns false when the area has no room for them, or when an earlier write failed. */
bool volume_append_purges(struct volume *volume, const struct purge_slots *slots, uint64_t floor,
                          uint64_t newest);
/* Writes all purges into the other area. The old area counts until they are on the device.
 * Returns false after an error (counted and logged). */
bool volume_rewrite_purges(struct volume *volume, const struct purge_slots *slots, uint64_t floor,
                           uint64_t newest);
/* Returns how many slots volume_rewrite_purges can write while some room stays free after them. */
size_t volume_purges_room(const struct volume *volume);
/* Syncs them to the device if settings.sync is set. Returns false as above. */
bool volume_sync_purges(struct volume *volume);
/* Returns the smallest purge number of all written and queued records. Older purges concern none
 * of them. */
uint64_t volume_oldest(struct volume *volume);

/* A body too large for memory, of known length, written as it passes:
 *
 *     struct volume_stream *stream = volume_stream_open(volume, object, variant, events, length);
 *     if (!volume_stream_is_behind(stream, loop->now))    else ask again in a moment
 *         volume_stream_put(stream, bytes);               never waits
 *     volume_stream_close(&stream, whole);
 *
 * What does not arrive whole is left out, and so is what the disk keeps waiting for longer than
 * settings.write_wait: it is then behind no more. NULL: not wanted, as when the same bytes (by
 * their validators and length) are on their way for another client. */
struct volume_stream;
struct volume_stream *volume_stream_open(struct volume *volume, struct object *object,
                                         uint32_t variant, uint64_t events, uint64_t body_length);
bool volume_stream_is_behind(struct volume_stream *stream, uint64_t now);
void volume_stream_put(struct volume_stream *stream, struct slice bytes);
void volume_stream_close(struct volume_stream **streamp, bool whole);

/* Returns false when the segment was or is about to be overwritten. */
bool volume_pin(struct volume *volume, const struct disk_place *place, uint64_t *sequence);
void volume_unpin(struct volume *volume, const struct disk_place *place);

enum volume_patience { VOLUME_MAY_WAIT, VOLUME_AT_ONCE };

/* Returns false after an error (counted and logged), or with VOLUME_AT_ONCE when the bytes are
 * not in memory. */
bool volume_read(struct volume *volume, uint64_t offset, void *bytes, size_t length,
                 enum volume_patience patience);
void volume_report_read_error(struct volume *volume, uint64_t offset, int error);
/* Returns true when all these bytes are in memory, so that sending them does not wait. */
bool volume_is_resident(const struct volume *volume, uint64_t offset, size_t length);
/* Notes an unusable record (counted and logged). It is hidden from now on. */
void volume_report_bad(struct volume *volume, uint64_t key, const struct disk_place *place,
                       const char *what);
void volume_statistics(const struct volume *volume, struct volume_statistics *statistics);

/* Returns the position in the file of a block, counted from the first segment. */
static inline uint64_t volume_offset(uint64_t block) {
    return SEGMENTS_AT + block * RECORD_ALIGN;
}

/* Inside disk/. */
/* Milliseconds of the monotonic clock. */
uint64_t volume_clock(void);
/* Notes that a record that may be good is hidden until a restart. */
static inline void volume_note_lost(struct volume *volume) {
    atomic_store_explicit(&volume->lost, true, memory_order_relaxed);
}

/* Locks a lent volume again and reads its header. Returns false with a message when another process
 * has it. */
bool volume_reclaim(struct volume *volume, char error[SETTINGS_ERROR]);
static inline bool volume_is_lent(const struct volume *volume) {
    return atomic_load_explicit(&volume->lent, memory_order_relaxed);
}

static inline void volume_note_lapse(struct volume *volume) {
    atomic_fetch_add_explicit(&volume->lapses, 1, memory_order_relaxed);
}

void volume_recover(struct volume *volume);
bool volume_put_bytes(struct volume *volume, const struct iovec *pieces, int count,
                      uint64_t offset);

#endif
