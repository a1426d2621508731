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
 * New records go behind the newest; the segment that is used next is the oldest one, and what is in
 * it goes, but for records that were used since they were written: those are written again, up to a
 * quarter of a segment. A removal is a record too, so that a restart does not bring back what was
 * removed; it is younger than what it removes, so the ring reclaims it later.
 *
 * A failed write costs its record: the segment is closed and the log goes on in the next; after
 * several failures in a row nothing is written for a while. When more than settings.write_queue
 * bytes wait, further objects are left out. All of it is counted.
 *
 * Threads: any. Locks: the queue's, then a shard's of the index; never across a system call.
 */
#ifndef RETORT_DISK_VOLUME_H
#define RETORT_DISK_VOLUME_H

#include "base/list.h"
#include "disk/index.h"
#include "disk/purge_log.h"
#include "disk/record.h"
#include "settings/settings.h"

#include <pthread.h>
#include <stdatomic.h>

#define VOLUME_NONE UINT32_MAX

struct volume;

/* What a volume asks and tells those who use it; from its thread. */
struct volume_hooks {
    void *arg;
    unsigned max_variants; /* of a key, at least 1 */
    /* Objects in memory whose body stands in this unit have to go. */
    void (*leave)(void *arg, struct volume *volume, uint32_t segment);
    /* Has a purge made this record out of date? */
    bool (*outdated)(void *arg, const struct record *record);
    /* Has memory an object of such a key that has been asked for? */
    bool (*used)(void *arg, uint64_t key);
};

struct volume_statistics {
    uint64_t objects, capacity, index_bytes;
    uint64_t writes, bytes_written, dropped, errors, corrupt, reclaimed, rewritten;
};

struct volume_segment {
    _Atomic uint64_t sequence; /* 0: nothing is in it */
    uint32_t run;  /* segments of the unit that begins here; 0: part of an earlier one's */
    uint32_t used; /* blocks, of the whole unit */
    _Atomic uint32_t pins;
    _Atomic bool leaving;
    struct list_link bodies; /* struct disk_body, under the volume's bodies_lock */
    bool streaming;          /* a body is on its way into it */
    _Atomic bool sent;       /* bytes of it may be in sockets: segment.c, detach */
    bool uncleared;          /* a header that does not count any more could not be cleared */
    _Atomic uint64_t oldest; /* the smallest number of purges that a record of it need not fear */
};

/* Where the purges of a volume stand. */
struct volume_purges {
    uint64_t generation; /* the newest of both areas */
    unsigned area;       /* 0, 1 */
    uint32_t used;       /* sectors of it */
    uint32_t first;      /* of these, when the generation began */
    bool broken;         /* nothing can be appended: it has to be written anew */
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
    bool copies; /* pages can't be detached from it: what is sent is copied first */
    char *map;   /* for asking what of it is in memory; NULL: it can't be */
    struct volume_purges purges;
    /* the queue */
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct list_link jobs, streams;
    struct volume_job *current; /* what the writer is at */
    struct list_link rescued;
    size_t queued;          /* bytes */
    _Atomic size_t passing; /* those of streams that the writer has not come to; read without it */
    bool stopping;
    /* the writer's */
    pthread_t thread;
    bool started;
    uint32_t hand, open_segment;
    uint64_t next_sequence, next_serial;
    struct record_entry *contents; /* of the open segment */
    uint32_t contents_count, contents_capacity;
    size_t rescued_bytes;
    uint64_t gathered;       /* bytes of the queue that streams may take up: stream.h */
    unsigned failures;       /* in a row */
    uint64_t paused_until;   /* milliseconds of the monotonic clock */
    bool unsynced;           /* something was written since the device had all */
    uint64_t sync_due;       /* when it should have, by volume_clock; 0: at no time */
    _Atomic uint64_t lapses; /* see volume_lapses */
    _Atomic bool lost;       /* see volume_note_lost */
    struct {
        _Atomic uint64_t writes, bytes_written, dropped, errors, corrupt, reclaimed, rewritten;
    } count;
};

/* Could this user open it? Makes nothing. False: and a message. */
bool volume_possible(const struct disk_settings *settings, char error[SETTINGS_ERROR]);
/* The secret that keys are made with there. False: there is no volume yet, or none of use. */
bool volume_read_secret(const struct disk_settings *settings, struct cache_secret *secret);
/* NULL and a message. The settings must outlive the volume. What stands on it counts only if it was
 * written with the secret that is in use by now (cache/name.h): nothing would be found. */
struct volume *volume_open(const struct disk_settings *settings, const struct volume_hooks *hooks,
                           char error[SETTINGS_ERROR]);
/* Records that were found; before it, nothing is written. */
bool volume_start(struct volume *volume);
/* Writes what is queued; from then on nothing is written. */
void volume_stop(struct volume *volume);
/* When no body of it is left. */
void volume_close(struct volume **volumep);

/* The object is complete, and in memory, or its body stands on the volume and its head is new. From
 * now on nobody finds what it takes the place of. */
void volume_store(struct volume *volume, struct object *object, uint32_t variant, uint64_t events);
/* From now on nobody finds it, nor what of it is on its way, and the record of that follows.
 * Returns how many there were. */
unsigned volume_remove(struct volume *volume, struct cache_key key, uint32_t variant);
/* All variants, and with a record of that in any case: nobody may find what stands there, since it
 * could not be read, or was purged by a list that could not be written. */
unsigned volume_remove_surely(struct volume *volume, struct cache_key key);
/* Likewise what the object takes the place of, which goes elsewhere or nowhere (RFC 9111 §4). */
void volume_supersede(struct volume *volume, const struct object *object, uint32_t variant);
/* Waits until what was queued before has been written. */
void volume_flush(struct volume *volume);
/* And is on the device, if settings.sync. False: that failed. */
bool volume_commit(struct volume *volume);
/* How many removals, and new heads of bodies that stand there, could not be written in any way, so
 * that a restart undoes them. From the first one on all variants of any key can be removed again.
 */
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
/* Of a new volume, where another one may have stood. */
bool volume_blank_purges(struct volume *volume);
/* What could not be read counts as purged; counted and logged. */
void volume_read_purges(struct volume *volume, struct purge_log *log);
/* False: the area has no room for them, or did not take what was written before. */
bool volume_append_purges(struct volume *volume, const struct purge_slots *slots, uint64_t floor,
                          uint64_t newest);
/* All of them, into the other area; what stands in this one counts until they are on the device.
 * False: an error (counted and logged). */
bool volume_rewrite_purges(struct volume *volume, const struct purge_slots *slots, uint64_t floor,
                           uint64_t newest);
/* Slots that volume_rewrite_purges has room for, so that there is some left behind them. */
size_t volume_purges_room(const struct volume *volume);
/* On the device, if settings.sync. False: as above. */
bool volume_sync_purges(struct volume *volume);
/* The smallest number among all that is there or queued: older purges concern nothing. */
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

/* False: the segment is about to be used again, or was. */
bool volume_pin(struct volume *volume, const struct disk_place *place, uint64_t *sequence);
void volume_unpin(struct volume *volume, const struct disk_place *place);

enum volume_patience { VOLUME_MAY_WAIT, VOLUME_AT_ONCE };

/* False: an error (counted and logged), or with VOLUME_AT_ONCE not in memory. */
bool volume_read(struct volume *volume, uint64_t offset, void *bytes, size_t length,
                 enum volume_patience patience);
void volume_report_read_error(struct volume *volume, uint64_t offset, int error);
/* Are all of these bytes in memory, so that sending them does not wait? */
bool volume_is_resident(const struct volume *volume, uint64_t offset, size_t length);
/* A record that can't be used: nobody finds it any more; counted and logged. */
void volume_report_bad(struct volume *volume, uint64_t key, const struct disk_place *place,
                       const char *what);
void volume_statistics(const struct volume *volume, struct volume_statistics *statistics);

/* In the file, of a block counted from the first segment. */
static inline uint64_t volume_offset(uint64_t block) {
    return SEGMENTS_AT + block * RECORD_ALIGN;
}

/* Inside disk/. */
/* Milliseconds of the monotonic clock. */
uint64_t volume_clock(void);
/* A record that may be good is not found until a restart. */
static inline void volume_note_lost(struct volume *volume) {
    atomic_store_explicit(&volume->lost, true, memory_order_relaxed);
}

static inline void volume_note_lapse(struct volume *volume) {
    atomic_fetch_add_explicit(&volume->lapses, 1, memory_order_relaxed);
}

void volume_recover(struct volume *volume);
bool volume_put_bytes(struct volume *volume, const struct iovec *pieces, int count,
                      uint64_t offset);

#endif
