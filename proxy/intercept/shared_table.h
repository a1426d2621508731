/*
 * A table of what all workers remember under a name, with a limit on the number of its entries.
 *
 *     struct place {
 *         struct shared_entry entry;      first member
 *         ...
 *     };
 *     struct shared_table *table = shared_table_new(4096, place_on_removal);
 *
 *     struct shared_part *part = shared_table_lock(table, key);
 *     struct shared_entry *entry = shared_part_find(part, key);
 *     if (entry == NULL) {
 *         place = xcalloc(1, sizeof *place);
 *         shared_part_put(part, &place->entry, key);       evicts another entry if there is no room
 *     }
 *     shared_part_unlock(part);
 *     ...
 *     shared_table_free(&table);
 *
 * The key is kept and compared whole. The table is divided into parts with a lock and a share of
 * the limit each; an entry may be used while its part is locked. When a part is full, an entry is
 * evicted that has not been found lately (cache/eviction.h).
 *
 * on_removal frees an entry that was evicted or removed. It runs under the lock of the part.
 *
 * Threads: any.
 */
#ifndef RETORT_INTERCEPT_SHARED_TABLE_H
#define RETORT_INTERCEPT_SHARED_TABLE_H

#include "base/list.h"
#include "base/slice.h"

#include <pthread.h>

struct shared_table;
struct shared_part;

/* The table's own part of an entry. */
struct shared_entry {
    struct shared_entry *next; /* of the same chain */
    struct list_link link;
    uint64_t hash;
    struct slice key; /* on the heap */
    bool found;       /* since the eviction last looked at it */
};

/* The limit is at least 1; it is divided among the parts and rounded up. */
struct shared_table *shared_table_new(size_t limit, void (*on_removal)(struct shared_entry *entry));
void shared_table_free(struct shared_table **tablep);
/* A lower limit evicts entries at once. */
void shared_table_set_limit(struct shared_table *table, size_t limit);
/* Removes the entries for which `is_wanted` is false; NULL: all of them. Returns how many. */
size_t shared_table_remove(struct shared_table *table,
                           bool (*is_wanted)(const struct shared_entry *entry, void *arg),
                           void *arg);
/* Calls `visit` for each entry, a part at a time, under its lock. */
void shared_table_visit(struct shared_table *table,
                        void (*visit)(const struct shared_entry *entry, void *arg), void *arg);
size_t shared_table_count(struct shared_table *table);

/* Locks the part that the key belongs to. */
struct shared_part *shared_table_lock(struct shared_table *table, struct slice key);
void shared_part_unlock(struct shared_part *part);
pthread_mutex_t *shared_part_mutex(struct shared_part *part);
/* NULL: there is none. The key is that of shared_table_lock. */
struct shared_entry *shared_part_find(struct shared_part *part, struct slice key);
/* Adds an entry with a copy of the key, under which there must be none. Returns how many entries
 * were evicted; the new one is not among them. */
unsigned shared_part_put(struct shared_part *part, struct shared_entry *entry, struct slice key);
/* Takes the entry out and calls on_removal. */
void shared_part_remove(struct shared_part *part, struct shared_entry *entry);

#endif
