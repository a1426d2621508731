#include "intercept/shared_table.h"

#include "base/assert.h"
#include "cache/eviction.h"
#include "net/secret_hash.h"

enum { PARTS = 16, CHAINS_FIRST = 16 };

struct shared_part {
    struct shared_table *table;
    pthread_mutex_t lock;
    struct shared_entry **chains;
    size_t chain_count, count, limit;
    struct eviction eviction;
};

struct shared_table {
    unsigned magic;
#define SHARED_TABLE_MAGIC 0x5a4ed7abu
    void (*on_removal)(struct shared_entry *entry);
    struct shared_part parts[PARTS];
};

static size_t share_of(size_t limit) {
    return (limit + PARTS - 1) / PARTS;
}

struct shared_table *shared_table_new(size_t limit,
                                      void (*on_removal)(struct shared_entry *entry)) {
    struct shared_table *table;
    ALLOC_OBJ(table, SHARED_TABLE_MAGIC);
    table->on_removal = on_removal;
    for (unsigned i = 0; i < PARTS; i++) {
        struct shared_part *part = &table->parts[i];
        part->table = table;
        pthread_mutex_init(&part->lock, NULL);
        part->chain_count = CHAINS_FIRST;
        part->chains = xcalloc(CHAINS_FIRST, sizeof *part->chains);
        part->limit = share_of(limit);
        eviction_init(&part->eviction);
    }
    return table;
}

void shared_table_free(struct shared_table **tablep) {
    struct shared_table *table = *tablep;
    *tablep = NULL;
    if (table == NULL)
        return;
    shared_table_remove(table, NULL, NULL);
    for (unsigned i = 0; i < PARTS; i++) {
        pthread_mutex_destroy(&table->parts[i].lock);
        free(table->parts[i].chains);
    }
    FREE_OBJ(table);
}

static struct shared_entry **shared_chain_of(const struct shared_part *part, uint64_t hash) {
    return &part->chains[hash & (part->chain_count - 1)];
}

void shared_part_remove(struct shared_part *part, struct shared_entry *entry) {
    struct shared_entry **at = shared_chain_of(part, entry->hash);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    eviction_leave(&part->eviction, &entry->link);
    part->count--;
    free((char *)entry->key.base);
    part->table->on_removal(entry);
}

static bool shared_take_use(struct list_link *link, void *kept) {
    struct shared_entry *entry = CONTAINER_OF(link, struct shared_entry, link);
    bool used = entry->found || entry == kept;
    entry->found = false;
    return used;
}

static unsigned shared_keep_limit(struct shared_part *part, struct shared_entry *kept) {
    unsigned evicted = 0;
    for (; part->count > part->limit; evicted++) {
        struct list_link *link = eviction_choose(&part->eviction, shared_take_use, kept);
        shared_part_remove(part, CONTAINER_OF(link, struct shared_entry, link));
    }
    return evicted;
}

void shared_table_set_limit(struct shared_table *table, size_t limit) {
    CHECK_OBJ(table, SHARED_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        struct shared_part *part = &table->parts[i];
        pthread_mutex_lock(&part->lock);
        part->limit = share_of(limit);
        shared_keep_limit(part, NULL);
        pthread_mutex_unlock(&part->lock);
    }
}

static size_t shared_part_sweep(struct shared_part *part,
                                bool (*is_wanted)(const struct shared_entry *, void *), void *arg) {
    size_t removed = 0;
    LIST_FOR_EACH_SAFE (link, next, &part->eviction.entries) {
        struct shared_entry *entry = CONTAINER_OF(link, struct shared_entry, link);
        if (is_wanted != NULL && is_wanted(entry, arg))
            continue;
        shared_part_remove(part, entry);
        removed++;
    }
    return removed;
}

size_t shared_table_remove(struct shared_table *table,
                           bool (*is_wanted)(const struct shared_entry *entry, void *arg),
                           void *arg) {
    size_t removed = 0;
    CHECK_OBJ(table, SHARED_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        struct shared_part *part = &table->parts[i];
        pthread_mutex_lock(&part->lock);
        removed += shared_part_sweep(part, is_wanted, arg);
        pthread_mutex_unlock(&part->lock);
    }
    return removed;
}

void shared_table_visit(struct shared_table *table,
                        void (*visit)(const struct shared_entry *entry, void *arg), void *arg) {
    CHECK_OBJ(table, SHARED_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        struct shared_part *part = &table->parts[i];
        pthread_mutex_lock(&part->lock);
        LIST_FOR_EACH (link, &part->eviction.entries)
            visit(CONTAINER_OF(link, struct shared_entry, link), arg);
        pthread_mutex_unlock(&part->lock);
    }
}

size_t shared_table_count(struct shared_table *table) {
    size_t count = 0;
    CHECK_OBJ(table, SHARED_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        pthread_mutex_lock(&table->parts[i].lock);
        count += table->parts[i].count;
        pthread_mutex_unlock(&table->parts[i].lock);
    }
    return count;
}

struct shared_part *shared_table_lock(struct shared_table *table, struct slice key) {
    CHECK_OBJ(table, SHARED_TABLE_MAGIC);
    struct shared_part *part = &table->parts[secret_hash(key) >> 60];
    pthread_mutex_lock(&part->lock);
    return part;
}

void shared_part_unlock(struct shared_part *part) {
    pthread_mutex_unlock(&part->lock);
}

pthread_mutex_t *shared_part_mutex(struct shared_part *part) {
    return &part->lock;
}

struct shared_entry *shared_part_find(struct shared_part *part, struct slice key) {
    uint64_t hash = secret_hash(key);
    struct shared_entry *entry = *shared_chain_of(part, hash);
    while (entry != NULL && (entry->hash != hash || !slice_equal(entry->key, key)))
        entry = entry->next;
    if (entry != NULL)
        entry->found = true;
    return entry;
}

static void shared_part_grow(struct shared_part *part) {
    struct shared_entry **old = part->chains;
    size_t old_count = part->chain_count;
    part->chain_count *= 2;
    part->chains = xcalloc(part->chain_count, sizeof *part->chains);
    for (size_t i = 0; i < old_count; i++)
        for (struct shared_entry *entry = old[i], *next; entry != NULL; entry = next) {
            struct shared_entry **chain = shared_chain_of(part, entry->hash);
            next = entry->next;
            entry->next = *chain;
            *chain = entry;
        }
    free(old);
}

unsigned shared_part_put(struct shared_part *part, struct shared_entry *entry, struct slice key) {
    if (part->count == part->chain_count)
        shared_part_grow(part);
    entry->hash = secret_hash(key);
    entry->key = slice_make(slice_dup(key), key.length);
    entry->found = false;
    struct shared_entry **chain = shared_chain_of(part, entry->hash);
    entry->next = *chain;
    *chain = entry;
    eviction_enter(&part->eviction, &entry->link);
    part->count++;
    return shared_keep_limit(part, entry);
}
