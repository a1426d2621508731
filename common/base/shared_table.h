/*
 * A hash table that all threads share, of what is remembered under a key, with a limit.
 *
 *     struct place {
 *         struct shared_entry entry;
 *         ...
 *         char name[];
 *     };
 *     struct shared_table *table = shared_table_new(4096, place_on_removal);
 *
 *     struct shared_part *part = shared_table_lock(table, name, now);
 *     struct shared_entry *entry = shared_part_find(part);
 *     if (entry == NULL) {
 *         place = xcalloc(1, sizeof *place + name.length);
 *         place->entry.expires = now + 60;
 *         shared_part_put(part, &place->entry, slice_copy(place->name, name), 1);
 *     }
 *     shared_part_unlock(part);
 *     ...
 *     shared_table_free(&table);
 *
 * The table is divided into parts, each with a lock and a share of the limit. Who locks a part says
 * for which key; that one is found, and put. An entry may be used while its part is locked, and
 * longer if its owner counts references and has no limit (SHARED_TABLE_ANY).
 *
 * The limit is one of costs: 1 for each entry, or its bytes. When a part is full, entries are
 * evicted that have expired or have not been found lately (base/eviction.h). An entry that has
 * expired is not found: it is removed instead.
 *
 * on_removal frees an entry that was evicted, has expired or was removed. It runs under the lock of
 * the part.
 *
 * Threads: any. Units of time: any that all calls of a table agree on.
 */
#ifndef RETORT_BASE_SHARED_TABLE_H
#define RETORT_BASE_SHARED_TABLE_H

#include "base/list.h"
#include "base/table.h"

#include <pthread.h>

struct shared_table;
struct shared_part;

/* No limit. */
#define SHARED_TABLE_ANY SIZE_MAX

/* Its owner may set `expires`; the table does the rest. */
struct shared_entry {
    struct table_entry entry;
    struct list_link link; /* in the part's eviction */
    size_t cost;
    uint64_t expires; /* 0: never */
    bool found;       /* since the eviction last looked at it */
};

/* The limit is divided among the parts and rounded up. */
struct shared_table *shared_table_new(size_t limit, void (*on_removal)(struct shared_entry *entry));
void shared_table_free(struct shared_table **tablep);
/* A lower limit evicts entries at once. */
void shared_table_set_limit(struct shared_table *table, size_t limit);
/* Removes the entries for which `is_wanted` is false; NULL: all of them. Returns how many. */
size_t shared_table_remove(struct shared_table *table,
                           bool (*is_wanted)(const struct shared_entry *entry, void *arg),
                           void *arg);

struct shared_table_statistics {
    size_t count, cost, limit; /* the limit: of all parts together */
};
void shared_table_statistics(struct shared_table *table,
                             struct shared_table_statistics *statistics);
/* Without a lock. */
size_t shared_table_count(const struct shared_table *table);

/* Locks the part that the key belongs to. The key stays while it is locked. */
struct shared_part *shared_table_lock(struct shared_table *table, struct slice key, uint64_t now);
/* Locks the part of an entry that surely is in the table. */
struct shared_part *shared_table_lock_of(struct shared_table *table,
                                         const struct shared_entry *entry);
void shared_part_unlock(struct shared_part *part);
pthread_mutex_t *shared_part_mutex(struct shared_part *part);
/* NULL: there is none. */
struct shared_entry *shared_part_find(struct shared_part *part);
/* Is the share of the limit as large as this? */
bool shared_part_fits(const struct shared_part *part, size_t cost);
/* Adds an entry, where there is none. The key, in memory of the entry, is equal to the one that the part is
 * locked for. Returns how many others were evicted. */
unsigned shared_part_put(struct shared_part *part, struct shared_entry *entry, struct slice key,
                         size_t cost);
/* Takes the entry out and calls on_removal. */
void shared_part_remove(struct shared_part *part, struct shared_entry *entry);

#endif
