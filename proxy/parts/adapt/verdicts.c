#include "adapt/verdicts.h"

#include "base/assert.h"
#include "base/shared_table.h"

/* OVERHEAD: about what the allocator and the table add to an entry. */
enum { OVERHEAD = 24 };

struct verdict_entry {
    struct shared_entry entry;
    unsigned magic;
#define VERDICT_ENTRY_MAGIC 0x7e4d1c70u
    enum adapter_verdict kind;
    uint64_t tag;
    bool has_body, routed;
    uint32_t key_length, head_length, body_length, next_services_length;
    char bytes[]; /* in this order */
};

struct verdicts {
    unsigned magic;
#define VERDICTS_MAGIC 0x7e4d1c75u
    struct shared_table *table;
};

static struct verdict_entry *verdict_entry_of(struct shared_entry *shared) {
    struct verdict_entry *entry = CONTAINER_OF(shared, struct verdict_entry, entry);
    CHECK_OBJ(entry, VERDICT_ENTRY_MAGIC);
    return entry;
}

static void verdict_on_removal(struct shared_entry *shared) {
    struct verdict_entry *entry = verdict_entry_of(shared);
    FREE_OBJ(entry);
}

struct verdicts *verdicts_new(size_t limit) {
    struct verdicts *verdicts;
    ALLOC_OBJ(verdicts, VERDICTS_MAGIC);
    verdicts->table = shared_table_new(limit, verdict_on_removal);
    return verdicts;
}

void verdicts_free(struct verdicts **verdictsp) {
    struct verdicts *verdicts = *verdictsp;
    *verdictsp = NULL;
    if (verdicts == NULL)
        return;
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    shared_table_free(&verdicts->table);
    FREE_OBJ(verdicts);
}

void verdicts_set_limit(struct verdicts *verdicts, size_t limit) {
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    shared_table_set_limit(verdicts->table, limit);
}

bool verdicts_any(const struct verdicts *verdicts) {
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    return shared_table_count(verdicts->table) > 0;
}

static struct slice verdict_take(const char **at, size_t length, struct arena *arena) {
    struct slice bytes = slice_make(*at, length);
    *at += length;
    return length == 0 ? SLICE("") : arena_slice(arena, bytes);
}

static void verdict_read(const struct verdict_entry *entry, struct arena *arena,
                         struct verdict *verdict) {
    const char *at = entry->bytes + entry->key_length;
    *verdict = (struct verdict){
        .kind = entry->kind,
        .has_body = entry->has_body,
        .routed = entry->routed,
        .tag = entry->tag,
        .expires = entry->entry.expires,
    };
    verdict->head = verdict_take(&at, entry->head_length, arena);
    verdict->body = verdict_take(&at, entry->body_length, arena);
    verdict->next_services = verdict_take(&at, entry->next_services_length, arena);
}

bool verdicts_find(struct verdicts *verdicts, struct slice key, uint64_t tag, uint64_t now,
                   struct arena *arena, struct verdict *verdict) {
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    struct shared_part *part = shared_table_lock(verdicts->table, key, now);
    struct shared_entry *found = shared_part_find(part);
    if (found != NULL && verdict_entry_of(found)->tag != tag) {
        shared_part_remove(part, found);
        found = NULL;
    }
    if (found != NULL)
        verdict_read(verdict_entry_of(found), arena, verdict);
    shared_part_unlock(part);
    return found != NULL;
}

/* NULL: there is no memory. */
static struct verdict_entry *make_entry(struct slice key, const struct verdict *verdict) {
    size_t length =
        key.length + verdict->head.length + verdict->body.length + verdict->next_services.length;
    struct verdict_entry *entry = malloc(sizeof *entry + length);
    if (entry == NULL)
        return NULL;
    INIT_OBJ(entry, VERDICT_ENTRY_MAGIC);
    entry->kind = verdict->kind;
    entry->has_body = verdict->has_body;
    entry->routed = verdict->routed;
    entry->tag = verdict->tag;
    entry->entry.expires = verdict->expires;
    entry->key_length = (uint32_t)key.length;
    entry->head_length = (uint32_t)verdict->head.length;
    entry->body_length = (uint32_t)verdict->body.length;
    entry->next_services_length = (uint32_t)verdict->next_services.length;
    char *at = slice_put(entry->bytes, key);
    at = slice_put(at, verdict->head);
    at = slice_put(at, verdict->body);
    slice_put(at, verdict->next_services);
    return entry;
}

/* The bytes that an entry costs, with its share of the index. */
static size_t verdict_cost_of(const struct verdict_entry *entry) {
    return sizeof *entry + entry->key_length + entry->head_length + entry->body_length +
           entry->next_services_length + OVERHEAD;
}

unsigned verdicts_keep(struct verdicts *verdicts, struct slice key, const struct verdict *verdict,
                       uint64_t now, bool *kept) {
    unsigned evicted = 0;
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    ASSERT(verdict->body.length <= VERDICT_BODY_MAX);
    *kept = false;
    struct verdict_entry *entry = make_entry(key, verdict);
    if (entry == NULL)
        return 0;
    size_t cost = verdict_cost_of(entry);
    struct shared_part *part = shared_table_lock(verdicts->table, key, now);
    if (shared_part_fits(part, cost)) {
        struct shared_entry *old = shared_part_find(part);
        if (old != NULL)
            shared_part_remove(part, old);
        evicted =
            shared_part_put(part, &entry->entry, slice_make(entry->bytes, entry->key_length), cost);
        entry = NULL;
        *kept = true;
    }
    shared_part_unlock(part);
    free(entry);
    return evicted;
}

void verdicts_statistics(struct verdicts *verdicts, struct verdicts_statistics *statistics) {
    struct shared_table_statistics table;
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    shared_table_statistics(verdicts->table, &table);
    *statistics = (struct verdicts_statistics){table.count, table.cost, table.limit};
}
