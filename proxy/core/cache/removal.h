/*
 * Removal: the one door through which stored responses leave memory and disk because somebody wants them to
 * go: operators, services, clients (PURGE, BAN, and the unsafe methods of RFC 9111 §4.4), another process that
 * is taken over, and requests that find a response useless.
 *
 *     removal_of_name(cache, level, &name);                              a worker: it never waits
 *     if (!removal_of_all(cache, level, &filter, PURGE_REMOVE, &found)) ...     a restart would undo it
 *
 * The order. Responses go both ways: what is stored goes from memory to disk, and what is found on disk goes to
 * memory. Disk first would leave what memory hands to the disk right behind the removal there. Memory first
 * would leave what a look-up has just found on disk, and brings to memory. So the order is memory, disk, and
 * memory once more, where each visit also refuses what was on its way when it began (cache_now,
 * second_level_now). A visit is left out only where it would find nothing:
 *
 *   - Purges by a filter have no first visit to memory: each record carries the number of the newest purge that
 *     it has seen, so what goes to the disk later is compared with the purge there. They begin on disk.
 *   - A broken response has no first visit either. It is not on disk. What goes there is what it has replaced,
 *     and only if nothing newer has come, which the disk asks memory for (disk_leave_out): so it has to be in
 *     memory until then.
 *
 * A kill -9 takes memory with it, whatever the order is. What is on disk counts, so whoever is told that a
 * removal is done is told so when the disk has written it: functions that return bool wait for that. The
 * others are for workers: the removal is queued behind all that the disk was given before.
 *
 * level: NULL where there is none.
 *
 * Threads: any for functions that do not wait; those that do, never in a worker. Errors: false, as each says.
 */
#ifndef RETORT_CACHE_REMOVAL_H
#define RETORT_CACHE_REMOVAL_H

#include "cache/second_level.h"
#include "cache/store.h"

/*
 * Changes in memory alone: purges, lifetimes, pins. A purge is in force before it begins to search: from then on
 * no look-up finds an object that it concerns. A response that is on its way into the cache is purged as well;
 * one that is requested after that is left alone. Then the purge goes through the store in batches
 * (cache_walk). It holds a lock for some hundred hash chains at once, and no lock while it frees memory, so
 * requests go on meanwhile.
 */

/* Returns how many objects the purge has concerned, including those that were looked up meanwhile.
 * Each object counts once. */
uint64_t cache_change_purge(struct cache *cache, const struct object_filter *filter,
                            enum purge_action action);
/* Like cache_change_purge, and in force as soon. When purges come so often that their walks would take
 * too much time, one later walk serves many purges (struct purger). False: the walk comes later, and
 * *count is the number of objects that were looked up by now. */
bool cache_change_purge_soon(struct cache *cache, const struct object_filter *filter,
                             enum purge_action action, uint64_t *count);
/* These three act on all variants of one URL, and return how many variants there were. */
uint64_t cache_change_purge_name(struct cache *cache, const struct cache_name *name,
                                 enum purge_action action);
/* The lifetime counts from now on. */
uint64_t cache_change_set_lifetime(struct cache *cache, const struct cache_name *name,
                                   int64_t seconds);
uint64_t cache_change_pin(struct cache *cache, const struct cache_name *name, bool pinned);

/* A removal that other nodes of a fleet are told of (part.h, spread). */
struct removal_order {
    struct slice
        url; /* of one response with all its variants, as it is stored; base NULL: `filter` says which ones */
    const struct object_filter *filter;
    enum purge_action action;
    bool is_ban;
    bool in_passing; /* nobody waits until they have it */
};

enum { REMOVAL_POSITION = 44, REMOVAL_MISSING = 20, REMOVAL_NODE = 64, REMOVAL_ERROR = 512 };

/* How far they have it. All zeros: there are no other nodes. */
struct removal_spread {
    bool told;
    char error[REMOVAL_ERROR];       /* why not; "": nobody else is to be told */
    char position[REMOVAL_POSITION]; /* in the stream of the fleet; "": it is not there yet */
    unsigned nodes, in_force;
    unsigned missing_count;
    char missing[REMOVAL_MISSING][REMOVAL_NODE];
    uint64_t
        all_by; /* milliseconds since 1970, when it is in force on all nodes in any case; 0: not known yet */
};

struct removal_found {
    uint64_t count; /* responses in memory */
    bool counted;   /* these are all; otherwise the others are searched for later */
};

/* All variants. */
void removal_of_name(struct cache *cache, struct second_level *level,
                     const struct cache_name *name);
/* The same for who is told how many there were. The caller waits for the disk (second_level_commit). */
uint64_t removal_of_name_surely(struct cache *cache, struct second_level *level,
                                const struct cache_name *name);
/* A response that is not usable any more, with all that services have made of it. */
void removal_of_object(struct cache *cache, struct second_level *level, struct object *object);
/* A response whose body has ended early, or is damaged, as soon as anybody notices; again does no harm. */
void removal_of_broken(struct cache *cache, struct second_level *level, struct object *object);
/* All that fit. False: it is in force, but a volume could not write it, so a restart would undo it. */
bool removal_of_all(struct cache *cache, struct second_level *level,
                    const struct object_filter *filter, enum purge_action action,
                    struct removal_found *found);
/* The same for a filter of an expression alone, which memory keeps as a ban (cache/ban.h) with that number. */
bool removal_by_ban(struct cache *cache, struct second_level *level,
                    const struct object_filter *filter, uint64_t *number);

#endif
