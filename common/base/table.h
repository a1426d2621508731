/*
 * A hash table of things that are found by a key of bytes. What is in it embeds a `struct
 * table_entry`, and owns the bytes of its key.
 *
 *     struct pool_key {
 *         struct table_entry entry;
 *         ...
 *         char bytes[];
 *     };
 *     struct table keys;
 *     table_init(&keys);
 *     key = xcalloc(1, sizeof *key + text.length);
 *     table_add(&keys, &key->entry, slice_copy(key->bytes, text));
 *     ...
 *     struct table_entry *entry = table_find(&keys, text);       NULL: there is none
 *     key = CONTAINER_OF(entry, struct pool_key, entry);
 *     ...
 *     TABLE_FOR_EACH_SAFE (entry, following, &keys) {
 *         table_remove(&keys, entry);
 *         free(CONTAINER_OF(entry, struct pool_key, entry));
 *     }
 *     table_release(&keys);
 *
 * Keys are hashed with a secret of the process (base/secret_hash.h), and compared whole. The table
 * has no limit: its owner has one. It has as many chains as there were ever entries at once, rounded
 * up to a power of two; they double when there are more entries than chains.
 *
 * Threads: the owner's. Tables of all threads: base/shared_table.h.
 */
#ifndef RETORT_BASE_TABLE_H
#define RETORT_BASE_TABLE_H

#include "base/secret_hash.h"

struct table_entry {
    struct table_entry *next; /* of the same chain */
    uint64_t hash;
    struct slice key;
};

struct table {
    struct table_entry **chains;
    size_t mask; /* how many chains there are, less one */
    size_t count;
};

void table_init(struct table *table);
/* Entries that are left stay as they are. */
void table_release(struct table *table);

/* The hash is that of the key. There may be several entries of one key. */
void table_add_hashed(struct table *table, struct table_entry *entry, struct slice key,
                      uint64_t hash);
void table_remove(struct table *table, struct table_entry *entry);

static inline void table_add(struct table *table, struct table_entry *entry, struct slice key) {
    table_add_hashed(table, entry, key, secret_hash(key));
}

/* The first entry of a chain. Chains are numbered by the lowest bits of any number. */
static inline struct table_entry *table_chain(const struct table *table, uint64_t number) {
    return table->chains[number & table->mask];
}

/* The first entry of the key in the rest of a chain; NULL: there is none. */
static inline struct table_entry *table_seek(struct table_entry *entry, struct slice key,
                                             uint64_t hash) {
    while (entry != NULL && (entry->hash != hash || !slice_equal(entry->key, key)))
        entry = entry->next;
    return entry;
}

static inline struct table_entry *table_find_hashed(const struct table *table, struct slice key,
                                                    uint64_t hash) {
    return table_seek(table_chain(table, hash), key, hash);
}

static inline struct table_entry *table_find(const struct table *table, struct slice key) {
    return table_find_hashed(table, key, secret_hash(key));
}

/* Another entry of the same key, in no order. */
static inline struct table_entry *table_find_next(const struct table_entry *entry) {
    return table_seek(entry->next, entry->key, entry->hash);
}

/* The entry behind this one, in no order; NULL: the first, or there are no more. */
struct table_entry *table_next(const struct table *table, const struct table_entry *entry);

/* The entry may be removed, and nothing be added. */
#define TABLE_FOR_EACH_SAFE(entry, following, table)                                               \
    for (struct table_entry *entry = table_next((table), NULL), *following;                        \
         entry != NULL && (following = table_next((table), entry), true); entry = following)

#endif
