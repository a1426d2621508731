#include "adapt/verdicts.h"

#include "base/assert.h"
#include "cache/eviction.h"
#include "net/secret_hash.h"

#include <pthread.h>
#include <stdatomic.h>

/* OVERHEAD: about what the allocator adds to an entry. */
enum { PARTS = 16, CHAINS_FIRST = 64, OVERHEAD = 16 };

struct entry {
    unsigned magic;
#define ENTRY_MAGIC 0x7e4d1c70u
    enum adapter_verdict kind;
    struct entry *next;    /* of the same chain */
    struct list_link link; /* in the part's eviction */
    uint64_t hash, tag, expires;
    bool has_body, routed, visited;
    uint32_t key_length, head_length, body_length, next_services_length;
    char bytes[]; /* in this order */
};

struct part {
    pthread_mutex_t lock;
    struct entry **chains;
    size_t chain_count, count, bytes, limit;
    struct eviction eviction;
};

struct verdicts {
    unsigned magic;
#define VERDICTS_MAGIC 0x7e4d1c75u
    _Atomic size_t count; /* of all parts */
    struct part parts[PARTS];
};

struct verdicts *verdicts_new(size_t limit) {
    struct verdicts *verdicts;
    ALLOC_OBJ(verdicts, VERDICTS_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        struct part *part = &verdicts->parts[i];
        pthread_mutex_init(&part->lock, NULL);
        part->chain_count = CHAINS_FIRST;
        part->chains = xcalloc(CHAINS_FIRST, sizeof *part->chains);
        part->limit = limit / PARTS;
        eviction_init(&part->eviction);
    }
    return verdicts;
}

static struct part *part_of(struct verdicts *verdicts, uint64_t hash) {
    return &verdicts->parts[hash >> 60];
}

static struct entry **chain_of(const struct part *part, uint64_t hash) {
    return &part->chains[hash & (part->chain_count - 1)];
}

static size_t verdicts_length_of(const struct entry *entry) {
    return (size_t)entry->key_length + entry->head_length + entry->body_length +
           entry->next_services_length;
}

/* The bytes that an entry costs, with its share of the index. */
static size_t verdicts_cost_of(const struct entry *entry) {
    return sizeof *entry + verdicts_length_of(entry) + sizeof entry + OVERHEAD;
}

static void verdicts_take_out(struct verdicts *verdicts, struct part *part, struct entry *entry) {
    struct entry **at = chain_of(part, entry->hash);
    CHECK_OBJ(entry, ENTRY_MAGIC);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    eviction_leave(&part->eviction, &entry->link);
    part->count--;
    part->bytes -= verdicts_cost_of(entry);
    atomic_fetch_sub_explicit(&verdicts->count, 1, memory_order_relaxed);
    FREE_OBJ(entry);
}

static void verdicts_grow(struct part *part) {
    struct entry **old = part->chains;
    size_t old_count = part->chain_count;
    part->chain_count *= 2;
    part->chains = xcalloc(part->chain_count, sizeof *part->chains);
    for (size_t i = 0; i < old_count; i++)
        for (struct entry *entry = old[i], *next; entry != NULL; entry = next) {
            struct entry **chain = chain_of(part, entry->hash);
            next = entry->next;
            entry->next = *chain;
            *chain = entry;
        }
    free(old);
}

static void verdicts_put_in(struct verdicts *verdicts, struct part *part, struct entry *entry) {
    if (part->count == part->chain_count)
        verdicts_grow(part);
    struct entry **chain = chain_of(part, entry->hash);
    entry->next = *chain;
    *chain = entry;
    eviction_enter(&part->eviction, &entry->link);
    part->count++;
    part->bytes += verdicts_cost_of(entry);
    atomic_fetch_add_explicit(&verdicts->count, 1, memory_order_relaxed);
}

/* An expired verdict is removed at once. */
static bool verdicts_take_use(struct list_link *link, void *arg) {
    struct entry *entry = CONTAINER_OF(link, struct entry, link);
    const uint64_t *now = arg;
    CHECK_OBJ(entry, ENTRY_MAGIC);
    bool used = entry->visited && entry->expires > *now;
    entry->visited = false;
    return used;
}

static void verdicts_evict_one(struct verdicts *verdicts, struct part *part, uint64_t now) {
    struct list_link *link = eviction_choose(&part->eviction, verdicts_take_use, &now);
    ASSERT(link != NULL);
    verdicts_take_out(verdicts, part, CONTAINER_OF(link, struct entry, link));
}

static unsigned verdicts_keep_limit(struct verdicts *verdicts, struct part *part, uint64_t now) {
    unsigned evicted = 0;
    for (; part->bytes > part->limit; evicted++)
        verdicts_evict_one(verdicts, part, now);
    return evicted;
}

void verdicts_free(struct verdicts **verdictsp) {
    struct verdicts *verdicts = *verdictsp;
    *verdictsp = NULL;
    if (verdicts == NULL)
        return;
    verdicts_set_limit(verdicts, 0);
    for (unsigned i = 0; i < PARTS; i++) {
        pthread_mutex_destroy(&verdicts->parts[i].lock);
        free(verdicts->parts[i].chains);
    }
    FREE_OBJ(verdicts);
}

void verdicts_set_limit(struct verdicts *verdicts, size_t limit) {
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    for (unsigned i = 0; i < PARTS; i++) {
        struct part *part = &verdicts->parts[i];
        pthread_mutex_lock(&part->lock);
        part->limit = limit / PARTS;
        verdicts_keep_limit(verdicts, part, 0);
        pthread_mutex_unlock(&part->lock);
    }
}

bool verdicts_any(const struct verdicts *verdicts) {
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    return atomic_load_explicit(&verdicts->count, memory_order_relaxed) > 0;
}

static struct entry *verdicts_find_entry(const struct part *part, struct slice key, uint64_t hash) {
    struct entry *entry = *chain_of(part, hash);
    while (entry != NULL &&
           (entry->hash != hash || !slice_equal(slice_make(entry->bytes, entry->key_length), key)))
        entry = entry->next;
    return entry;
}

static void verdicts_read_entry(const struct entry *entry, struct arena *arena,
                                struct verdict *verdict) {
    const char *at = entry->bytes + entry->key_length;
    *verdict = (struct verdict){
        .kind = entry->kind,
        .has_body = entry->has_body,
        .routed = entry->routed,
        .tag = entry->tag,
        .expires = entry->expires,
    };
    verdict->head = arena_slice(arena, slice_make(at, entry->head_length));
    at += entry->head_length;
    verdict->body = arena_slice(arena, slice_make(at, entry->body_length));
    at += entry->body_length;
    verdict->next_services = arena_slice(arena, slice_make(at, entry->next_services_length));
}

bool verdicts_find(struct verdicts *verdicts, struct slice key, uint64_t tag, uint64_t now,
                   struct arena *arena, struct verdict *verdict) {
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    uint64_t hash = secret_hash(key);
    struct part *part = part_of(verdicts, hash);
    pthread_mutex_lock(&part->lock);
    struct entry *entry = verdicts_find_entry(part, key, hash);
    if (entry != NULL && (entry->tag != tag || entry->expires <= now)) {
        verdicts_take_out(verdicts, part, entry);
        entry = NULL;
    }
    if (entry != NULL) {
        entry->visited = true;
        verdicts_read_entry(entry, arena, verdict);
    }
    pthread_mutex_unlock(&part->lock);
    return entry != NULL;
}

/* NULL: there is no memory. */
static struct entry *make_entry(struct slice key, const struct verdict *verdict) {
    size_t length =
        key.length + verdict->head.length + verdict->body.length + verdict->next_services.length;
    struct entry *entry = malloc(sizeof *entry + length);
    if (entry == NULL)
        return NULL;
    INIT_OBJ(entry, ENTRY_MAGIC);
    entry->kind = verdict->kind;
    entry->has_body = verdict->has_body;
    entry->routed = verdict->routed;
    entry->tag = verdict->tag;
    entry->expires = verdict->expires;
    entry->hash = secret_hash(key);
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

unsigned verdicts_keep(struct verdicts *verdicts, struct slice key, const struct verdict *verdict,
                       uint64_t now, bool *kept) {
    unsigned evicted = 0;
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    ASSERT(verdict->body.length <= VERDICT_BODY_MAX);
    *kept = false;
    struct entry *entry = make_entry(key, verdict);
    if (entry == NULL)
        return 0;
    struct part *part = part_of(verdicts, entry->hash);
    pthread_mutex_lock(&part->lock);
    if (verdicts_cost_of(entry) <= part->limit) {
        struct entry *old = verdicts_find_entry(part, key, entry->hash);
        if (old != NULL)
            verdicts_take_out(verdicts, part, old);
        verdicts_put_in(verdicts, part, entry);
        entry = NULL;
        evicted = verdicts_keep_limit(verdicts, part, now);
        *kept = true;
    }
    pthread_mutex_unlock(&part->lock);
    free(entry);
    return evicted;
}

void verdicts_statistics(struct verdicts *verdicts, struct verdicts_statistics *statistics) {
    CHECK_OBJ(verdicts, VERDICTS_MAGIC);
    *statistics = (struct verdicts_statistics){.count = 0};
    for (unsigned i = 0; i < PARTS; i++) {
        struct part *part = &verdicts->parts[i];
        pthread_mutex_lock(&part->lock);
        statistics->count += part->count;
        statistics->bytes += part->bytes;
        statistics->limit += part->limit;
        pthread_mutex_unlock(&part->lock);
    }
}
