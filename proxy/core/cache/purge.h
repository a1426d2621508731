/*
 * A purge says that stored objects which fit a filter must not be used any more, or are stale. A
 * purge concerns only objects that were requested before it. Each purge has a number. A purge is in
 * force at once, however often purges come and however many objects are stored: an object carries a
 * number, and only purges with larger numbers can concern the object. It is compared with these
 * when it is looked up, with all of them at once (filter_table.h), and only once with each. The
 * store keeps the purges (cache/store.c).
 *
 *     uint64_t number = purges_add(&purges, &filter, PURGE_REMOVE);
 *     if (purges_check(&purges, object).action == PURGE_REMOVE) ...      when it is looked up
 *
 * A walk through all objects compares each object with all purges that exist when the walk begins.
 * After that none of these purges concerns a stored object:
 *
 *     uint64_t until = purges_newest(&purges);
 *     ... every object ...
 *     purges_end_walk(&purges, until);
 *
 * A response that was on its way during a purge that it fits must not be stored as if it were newer
 * than the purge. So a request notes the newest number before it goes to the origin, and its
 * response is compared with the purges since that number.
 *
 *     uint64_t since = purges_newest(&purges);                   before the origin is asked
 *     switch (purges_judge(&purges, object, since)) ...          before it is stored
 *     purges_enter(&purges, object);
 *
 * For this purpose a purge is remembered for at least PURGES_SECONDS, however many purges there
 * are. It is forgotten after about twice that time if walks keep up. A response that was on its way
 * for longer counts as purged, so no purge is ever missed.
 *
 * Purges of single keys, which every POST makes, are remembered apart, in PURGE_KEYS places that
 * keys share. A place knows its last key, and when it last had another key. When two keys of one
 * place are purged at the same time, a third key may be mistaken for the first; then the third
 * key's response is not stored this time.
 *
 * Threads: any. A comparison takes a read lock, which several threads may hold at once. The check
 * of an object that no newer purge can concern takes no lock.
 */
#ifndef RETORT_CACHE_PURGE_H
#define RETORT_CACHE_PURGE_H

#include "base/threads.h"
#include "cache/filter_table.h"

enum { PURGES_SECONDS = 120, PURGE_KEYS = 4096 };

/* A place for purges of single keys. */
struct purged_key {
    _Atomic uint64_t newest; /* the number of the last purge there */
    struct cache_key key;    /* the key of that purge */
    uint64_t others;         /* the number of the last purge of any other key */
};

struct purges {
    pthread_rwlock_t lock;
    _Atomic uint64_t newest, due;  /* due: newest; 0: a walk for it has ended */
    _Atomic uint64_t walked;       /* all objects were compared with purges up to this one */
    struct filter_table tables[2]; /* the younger first */
    uint64_t floor;                /* the newest purge that is forgotten */
    uint64_t turned_at;            /* when the younger table began, in seconds */
    _Atomic uint64_t newest_key;
    struct purged_key keys[PURGE_KEYS];
};

void purges_init(struct purges *purges);
void purges_release(struct purges *purges);

uint64_t purges_add(struct purges *purges, const struct object_filter *filter,
                    enum purge_action action);
/* What the purges after number `since` would have done to the object. */
enum purge_action purges_judge(struct purges *purges, const struct object *object, uint64_t since);
/* Gives the object the newest number. Called when the object is about to be stored, under a lock
 * that walks take, after it has been compared with all purges. */
void purges_enter(struct purges *purges, struct object *object);
/* Compares the object with the purges that are newer than its number. If the action is not
 * PURGE_REMOVE, the object gets the newest number. If the action is PURGE_STALE, the object has
 * become stale. */
struct filter_found purges_compare(struct purges *purges, struct object *object);
/* Counts an object as a hit of what purges_compare found, PURGE_REMOVE: it was removed for that. */
void purges_note_removal(struct purges *purges, const struct filter_found *found);
/* For a walk, which holds the lock: may a newer purge concern the object? */
bool purges_may_concern(struct purges *purges, const struct object *object);
/* All stored objects have been compared with the purges up to number `until`. */
void purges_end_walk(struct purges *purges, uint64_t until);
/* How many objects this purge has concerned. Purges with the same filter count together until a
 * walk has ended. */
uint64_t purges_hits(struct purges *purges, const struct object_filter *filter, uint64_t number);
/* How many purges a walk has to compare one by one with each object. */
size_t purges_slow(struct purges *purges);

void purges_add_key(struct purges *purges, struct cache_key key);
bool purges_has_key(struct purges *purges, struct cache_key key, uint64_t since);

static inline uint64_t purges_newest(const struct purges *purges) {
    return atomic_load_explicit(&purges->newest, memory_order_acquire);
}

static inline uint64_t purges_newest_key(const struct purges *purges) {
    return atomic_load_explicit(&purges->newest_key, memory_order_acquire);
}

/* An object keeps only the last 32 bits of its number: it never lags behind by more. */
static inline uint64_t purges_number_of(const struct purges *purges, const struct object *object) {
    uint64_t newest = purges_newest(purges);
    uint32_t kept = atomic_load_explicit(&object->purged, memory_order_acquire);
    uint32_t lag = (uint32_t)newest - kept;
    uint64_t walked = atomic_load_explicit(&purges->walked, memory_order_acquire);
    return lag >= newest || newest - lag < walked ? walked : newest - lag;
}

static inline struct filter_found purges_check(struct purges *purges, struct object *object) {
    uint64_t due = atomic_load_explicit(&purges->due, memory_order_acquire);
    if (due == 0 || (uint32_t)due == atomic_load_explicit(&object->purged, memory_order_acquire))
        return (struct filter_found){.action = PURGE_NOTHING};
    return purges_compare(purges, object);
}

/*
 * Decides when to walk through all objects for purges. A purge is in force without a walk. A walk
 * frees the memory of the objects that the purge concerns, counts them, and lets the purge be
 * forgotten. One walk serves all purges that exist when it begins. All walks together take at most
 * one part in PURGER_SHARE of a processor.
 *
 *     purger_init(&purger, walk, arg);
 *     if (!purger_walk_soon(&purger)) ...      not now: a thread does it as soon as it may
 *     purger_walk_now(&purger);                whatever it takes
 *     purger_release(&purger);
 *
 * Threads: any. One walk runs at a time. The purger starts a thread of its own when it first
 * needs one.
 */

/* A walk that took a millisecond of processor time is paid for by PURGER_SHARE milliseconds
 * of waiting. Unused waiting time counts as credit, for at most PURGER_CREDIT milliseconds
 * of walks. */
enum { PURGER_SHARE = 20, PURGER_CREDIT = 300 };

struct purger {
    void (*walk)(void *arg);
    void *arg;
    pthread_mutex_t walking; /* held during a walk */
    struct thread_clock clock;
    _Atomic uint64_t paid_until; /* when all walks are paid for; changed under `walking` */
};

void purger_init(struct purger *purger, void (*walk)(void *arg), void *arg);
void purger_release(struct purger *purger);
/* True: the walk is done, for all purges that existed before the call. False: the purger's thread
 * will walk later. */
bool purger_walk_soon(struct purger *purger);
void purger_walk_now(struct purger *purger);

#endif
