#include "base/shared_table.h"

#include "base/assert.h"
#include "base/eviction.h"

#include <stdatomic.h>

enum { PARTS = 16 };

struct shared_part {
    struct shared_table *owner;
    pthread_mutex_t lock;
    struct table table;
    struct eviction eviction;
    size_t cost, limit;
    struct slice key; /* that it is locked for, with its hash and the time */
    uint64_t hash, now;
};

struct shared_table {
    unsigned magic;
#define SHARED_TABLE_MAGIC 0x5a4ed7abu
    void (*on_removal)(struct shared_entry *entry);
    _Atomic size_t count;
    struct shared_part parts[PARTS];
};

static struct shared_entry *shared_entry_of(struct list_link *link) {
    return CONTAINER_OF(link, struct shared_entry, link);
}

static size_t share_of(size_t limit) {
    return limit / PARTS + (limit % PARTS > 0);
}

struct shared_table *shared_table_new(size_t limit,
                                      void (*on_removal)(struct shared_entry *entry)) {
    struct shared_table *table;
    ALLOC_OBJ(table, SHARED_TABLE_MAGIC);
    table->on_removal = on_removal;
    for (unsigned i = 0; i < PARTS; i++) {
        struct shared_part *part = &table->parts[i];
        part->owner = table;
        part->limit = share_of(limit);
        pthread_mutex_init(&part->lock, NULL);
        table_init(&part->table);
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
        table_release(&table->parts[i].table);
    }
    FREE_OBJ(table);
}

void shared_part_remove(struct shared_part *part, struct shared_entry *entry) {
    table_remove(&part->table, &entry->entry);
    eviction_leave(&part->eviction, &entry->link);
    part->cost -= entry->cost;
    atomic_fetch_sub_explicit(&part->owner->count, 1, memory_order_relaxed);
    part->owner->on_removal(entry);
}

static bool shared_entry_is_over(const struct shared_entry *entry, uint64_t now) {
    return entry->expires != 0 && entry->expires <= now;
}

/* An eviction, which leaves one entry alone. */
struct shared_provenance_room {
    uint64_t now;
    const struct shared_entry *kept; /* NULL: none */
};

static bool shared_take_use(struct list_link *link, void *arg) {
    struct shared_entry *entry = shared_entry_of(link);
    const struct shared_provenance_room *room = arg;
    bool used = entry == room->kept || (entry->found && !shared_entry_is_over(entry, room->now));
    entry->found = false;
    return used;
}

static unsigned shared_keep_limit(struct shared_part *part, struct shared_provenance_room room) {
    unsigned evicted = 0;
    for (; part->cost > part->limit && part->table.count > (room.kept != NULL); evicted++)
        shared_part_remove(
            part, shared_entry_of(eviction_choose(&part->eviction, shared_take_use, &room)));
    return evicted;
}

void shared_table_set_limit(struct shared_table *table, size_t limit) {
    CHECK_OBJ(table, SHARED_TABLE_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        struct shared_part *part = &table->parts[i];
        pthread_mutex_lock(&part->lock);
        part->limit = share_of(limit);
        shared_keep_limit(part, (struct shared_provenance_room){.kept = NULL});
        pthread_mutex_unlock(&part->lock);
    }
}

static size_t shared_part_sweep(struct shared_part *part,
                                bool (*is_wanted)(const struct shared_entry *, void *), void *arg) {
    size_t removed = 0;
    LIST_FOR_EACH_SAFE (link, next, &part->eviction.entries) {
        if (is_wanted != NULL && is_wanted(shared_entry_of(link), arg))
            continue;
        shared_part_remove(part, shared_entry_of(link));
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

void shared_table_statistics(struct shared_table *table,
                             struct shared_table_statistics *statistics) {
    CHECK_OBJ(table, SHARED_TABLE_MAGIC);
    *statistics = (struct shared_table_statistics){.count = 0};
    for (unsigned i = 0; i < PARTS; i++) {
        struct shared_part *part = &table->parts[i];
        pthread_mutex_lock(&part->lock);
        statistics->count += part->table.count;
        statistics->cost += part->cost;
        statistics->limit += part->limit;
        pthread_mutex_unlock(&part->lock);
    }
}

size_t shared_table_count(const struct shared_table *table) {
    CHECK_OBJ(table, SHARED_TABLE_MAGIC);
    return atomic_load_explicit(&table->count, memory_order_relaxed);
}

static struct shared_part *shared_part_lock(struct shared_table *table, uint64_t hash) {
    CHECK_OBJ(table, SHARED_TABLE_MAGIC);
    struct shared_part *part = &table->parts[hash >> 60];
    pthread_mutex_lock(&part->lock);
    return part;
}

struct shared_part *shared_table_lock(struct shared_table *table, struct slice key, uint64_t now) {
    uint64_t hash = secret_hash(key);
    struct shared_part *part = shared_part_lock(table, hash);
    part->key = key;
    part->hash = hash;
    part->now = now;
    return part;
}

struct shared_part *shared_table_lock_of(struct shared_table *table,
                                         const struct shared_entry *entry) {
    return shared_part_lock(table, entry->entry.hash);
}

void shared_part_unlock(struct shared_part *part) {
    pthread_mutex_unlock(&part->lock);
}

pthread_mutex_t *shared_part_mutex(struct shared_part *part) {
    return &part->lock;
}

struct shared_entry *shared_part_find(struct shared_part *part) {
    struct table_entry *found = table_find_hashed(&part->table, part->key, part->hash);
    if (found == NULL)
        return NULL;
    struct shared_entry *entry = CONTAINER_OF(found, struct shared_entry, entry);
    if (shared_entry_is_over(entry, part->now)) {
        shared_part_remove(part, entry);
        return NULL;
    }
    entry->found = true;
    return entry;
}

bool shared_part_fits(const struct shared_part *part, size_t cost) {
    return cost <= part->limit;
}

unsigned shared_part_put(struct shared_part *part, struct shared_entry *entry, struct slice key,
                         size_t cost) {
    entry->cost = cost;
    entry->found = false;
    table_add_hashed(&part->table, &entry->entry, key, part->hash);
    eviction_enter(&part->eviction, &entry->link);
    part->cost += cost;
    atomic_fetch_add_explicit(&part->owner->count, 1, memory_order_relaxed);
    return shared_keep_limit(part, (struct shared_provenance_room){part->now, entry});
}
