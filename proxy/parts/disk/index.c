#include "disk/index.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { SHARDS = 16, SHARD_BITS = 4, CHUNK = 1024, FIRST_BUCKETS = 64, LOAD = 2 };

#define NONE       UINT32_MAX
#define BLOCKS_MAX ((1u << 30) - 1)

struct entry {
    uint64_t key;
    uint32_t variant, at;
    uint32_t blocks : 30, marked : 1, dead : 1;
    uint32_t next, next_in_segment; /* numbers of entries */
} __attribute__((packed, aligned(4)));

_Static_assert(sizeof(struct entry) == 28, "an entry, with its share of a bucket, takes 32 bytes");

struct shard {
    pthread_mutex_t lock;
    struct entry **chunks;
    uint32_t chunk_count, entry_count; /* entries taken from chunks so far */
    uint32_t free;                     /* a chain by next_in_segment */
    uint32_t *buckets, *segments;
    uint32_t bucket_count, live;
} __attribute__((aligned(64)));

struct disk_index {
    unsigned magic;
#define DISK_INDEX_MAGIC 0xd15c1de0u
    uint32_t segment_count, blocks_in_segment;
    unsigned max_variants;
    _Atomic uint64_t count;
    struct shard shards[SHARDS];
};

static uint32_t *chain_heads(uint32_t count) {
    uint32_t *heads = xmalloc(count * sizeof *heads);
    memset(heads, 0xff, count * sizeof *heads);
    return heads;
}

struct disk_index *disk_index_new(uint32_t segment_count, uint32_t blocks_in_segment,
                                  unsigned max_variants) {
    ASSERT(max_variants > 0);
    struct disk_index *index = aligned_alloc(64, sizeof *index);
    ASSERT(index != NULL);
    INIT_OBJ(index, DISK_INDEX_MAGIC);
    index->segment_count = segment_count;
    index->blocks_in_segment = blocks_in_segment;
    index->max_variants = max_variants;
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &index->shards[i];
        pthread_mutex_init(&shard->lock, NULL);
        shard->free = NONE;
        shard->bucket_count = FIRST_BUCKETS;
        shard->buckets = chain_heads(FIRST_BUCKETS);
        shard->segments = chain_heads(segment_count);
    }
    return index;
}

void disk_index_free(struct disk_index **indexp) {
    struct disk_index *index = *indexp;
    *indexp = NULL;
    CHECK_OBJ(index, DISK_INDEX_MAGIC);
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &index->shards[i];
        for (uint32_t j = 0; j < shard->chunk_count; j++)
            free(shard->chunks[j]);
        free(shard->chunks);
        free(shard->buckets);
        free(shard->segments);
        pthread_mutex_destroy(&shard->lock);
    }
    FREE_OBJ(index);
}

static struct shard *shard_of(struct disk_index *index, uint64_t key) {
    return &index->shards[key % SHARDS];
}

static uint32_t *disk_index_bucket_of(struct shard *shard, uint64_t key) {
    return &shard->buckets[(key >> SHARD_BITS) % shard->bucket_count];
}

static struct entry *entry_at(const struct shard *shard, uint32_t number) {
    return &shard->chunks[number / CHUNK][number % CHUNK];
}

static uint32_t disk_index_take_entry(struct shard *shard) {
    uint32_t number = shard->free;
    if (number != NONE) {
        shard->free = entry_at(shard, number)->next_in_segment;
        return number;
    }
    if (shard->entry_count == shard->chunk_count * CHUNK) {
        shard->chunks = xrealloc(shard->chunks, (shard->chunk_count + 1) * sizeof(struct entry *));
        shard->chunks[shard->chunk_count++] = xmalloc(CHUNK * sizeof(struct entry));
    }
    return shard->entry_count++;
}

static void disk_index_grow(struct shard *shard) {
    uint32_t *old = shard->buckets, old_count = shard->bucket_count;
    shard->bucket_count *= 2;
    shard->buckets = chain_heads(shard->bucket_count);
    for (uint32_t i = 0; i < old_count; i++) {
        /* The entries of a bucket are sorted from new to old, so the chain is reversed before it
         * is moved. */
        uint32_t turned = NONE;
        for (uint32_t number = old[i], next; number != NONE; number = next) {
            struct entry *entry = entry_at(shard, number);
            next = entry->next;
            entry->next = turned;
            turned = number;
        }
        for (uint32_t number = turned, next; number != NONE; number = next) {
            struct entry *entry = entry_at(shard, number);
            uint32_t *bucket = disk_index_bucket_of(shard, entry->key);
            next = entry->next;
            entry->next = *bucket;
            *bucket = number;
        }
    }
    free(old);
}

static bool is_renewal(const struct entry *entry) {
    return (entry->variant & DISK_RENEWAL) != 0;
}

static bool is_hidden(const struct entry *entry) {
    return (entry->variant & DISK_HIDDEN) != 0;
}

/* Removes entries of the key from their bucket: those of a variant, or the one at a place.
 * Returns the number of objects that they belonged to. */
static unsigned unlink_entries(struct disk_index *index, struct shard *shard, uint64_t key,
                               uint32_t variant, uint32_t at) {
    unsigned count = 0;
    uint32_t *link = disk_index_bucket_of(shard, key), mask = disk_variant_mask(variant);
    while (*link != NONE) {
        struct entry *entry = entry_at(shard, *link);
        bool fits =
            entry->key == key &&
            (variant == DISK_ANY_VARIANT || (entry->variant & mask & ~DISK_HIDDEN) == variant) &&
            (at == NONE || entry->at == at);
        if (!fits) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        entry->dead = true;
        shard->live--;
        count += !is_renewal(entry);
    }
    atomic_fetch_sub_explicit(&index->count, count, memory_order_relaxed);
    return count;
}

/* A look-up goes through all variants of a key, so the oldest are removed when there are too
 * many. The entries of a bucket are sorted from new to old. */
static void limit_variants(struct disk_index *index, struct shard *shard, uint64_t key) {
    unsigned count = 0;
    uint32_t oldest = NONE;
    for (uint32_t number = *disk_index_bucket_of(shard, key); number != NONE;) {
        const struct entry *entry = entry_at(shard, number);
        if (entry->key == key && !is_renewal(entry)) {
            oldest = entry->at;
            count++;
        }
        number = entry->next;
    }
    if (count > index->max_variants)
        unlink_entries(index, shard, key, DISK_ANY_VARIANT, oldest);
}

/* Call with the lock held. */
static void disk_index_add_entry(struct disk_index *index, struct shard *shard, uint64_t key,
                                 const struct disk_place *place) {
    ASSERT(place->segment < index->segment_count && place->blocks <= BLOCKS_MAX);
    if (shard->live >= shard->bucket_count * LOAD)
        disk_index_grow(shard);
    uint32_t number = disk_index_take_entry(shard);
    uint32_t *bucket = disk_index_bucket_of(shard, key),
             *segment = &shard->segments[place->segment];
    *entry_at(shard, number) = (struct entry){
        .key = key,
        .variant = place->variant,
        .at = place->at,
        .blocks = place->blocks & BLOCKS_MAX,
        .next = *bucket,
        .next_in_segment = *segment,
    };
    *bucket = *segment = number;
    shard->live++;
    if ((place->variant & DISK_RENEWAL) == 0)
        atomic_fetch_add_explicit(&index->count, 1, memory_order_relaxed);
    limit_variants(index, shard, key);
}

void disk_index_put(struct disk_index *index, uint64_t key, const struct disk_place *place) {
    CHECK_OBJ(index, DISK_INDEX_MAGIC);
    struct shard *shard = shard_of(index, key);
    pthread_mutex_lock(&shard->lock);
    unlink_entries(index, shard, key, place->variant, NONE);
    disk_index_add_entry(index, shard, key, place);
    pthread_mutex_unlock(&shard->lock);
}

void disk_index_move(struct disk_index *index, uint64_t key, uint32_t from,
                     const struct disk_place *place) {
    CHECK_OBJ(index, DISK_INDEX_MAGIC);
    struct shard *shard = shard_of(index, key);
    pthread_mutex_lock(&shard->lock);
    unlink_entries(index, shard, key, DISK_ANY_VARIANT, from);
    disk_index_add_entry(index, shard, key, place);
    pthread_mutex_unlock(&shard->lock);
}

static struct disk_place disk_index_place_of(const struct disk_index *index,
                                             const struct entry *entry) {
    return (struct disk_place){
        .variant = entry->variant & ~DISK_HIDDEN,
        .at = entry->at,
        .blocks = entry->blocks,
        .segment = entry->at / index->blocks_in_segment,
    };
}

static unsigned index_find_slot(struct disk_index *index, uint64_t key, bool hidden,
                                struct disk_place *places, unsigned most) {
    struct shard *shard = shard_of(index, key);
    unsigned count = 0;
    pthread_mutex_lock(&shard->lock);
    for (uint32_t number = *disk_index_bucket_of(shard, key); number != NONE && count < most;) {
        const struct entry *entry = entry_at(shard, number);
        if (entry->key == key && (hidden || !is_hidden(entry)))
            places[count++] = disk_index_place_of(index, entry);
        number = entry->next;
    }
    pthread_mutex_unlock(&shard->lock);
    return count;
}

unsigned disk_index_find(struct disk_index *index, uint64_t key, struct disk_place *places,
                         unsigned most) {
    return index_find_slot(index, key, false, places, most);
}

unsigned disk_index_find_all(struct disk_index *index, uint64_t key, struct disk_place *places,
                             unsigned most) {
    return index_find_slot(index, key, true, places, most);
}

void disk_index_hide(struct disk_index *index, uint64_t key, uint32_t variant, bool itself) {
    struct shard *shard = shard_of(index, key);
    pthread_mutex_lock(&shard->lock);
    for (uint32_t number = *disk_index_bucket_of(shard, key); number != NONE;) {
        struct entry *entry = entry_at(shard, number);
        uint32_t its = entry->variant & ~(DISK_RENEWAL | DISK_HIDDEN);
        if (entry->key == key &&
            (its == variant ? itself : disk_variant_names(its) != disk_variant_names(variant)))
            entry->variant |= DISK_HIDDEN;
        number = entry->next;
    }
    pthread_mutex_unlock(&shard->lock);
}

void disk_index_show(struct disk_index *index, uint64_t key, uint32_t variant) {
    struct shard *shard = shard_of(index, key);
    pthread_mutex_lock(&shard->lock);
    for (uint32_t number = *disk_index_bucket_of(shard, key); number != NONE;) {
        struct entry *entry = entry_at(shard, number);
        if (entry->key == key && (entry->variant & ~(DISK_RENEWAL | DISK_HIDDEN)) == variant)
            entry->variant &= ~DISK_HIDDEN;
        number = entry->next;
    }
    pthread_mutex_unlock(&shard->lock);
}

unsigned disk_index_remove(struct disk_index *index, uint64_t key, uint32_t variant) {
    struct shard *shard = shard_of(index, key);
    pthread_mutex_lock(&shard->lock);
    unsigned count = unlink_entries(index, shard, key, variant, NONE);
    pthread_mutex_unlock(&shard->lock);
    return count;
}

static struct entry *find_place(struct shard *shard, uint64_t key, uint32_t at) {
    for (uint32_t number = *disk_index_bucket_of(shard, key); number != NONE;) {
        struct entry *entry = entry_at(shard, number);
        if (entry->key == key && entry->at == at)
            return entry;
        number = entry->next;
    }
    return NULL;
}

bool disk_index_remove_place(struct disk_index *index, uint64_t key, uint32_t at) {
    struct shard *shard = shard_of(index, key);
    pthread_mutex_lock(&shard->lock);
    bool found = find_place(shard, key, at) != NULL;
    unlink_entries(index, shard, key, DISK_ANY_VARIANT, at);
    pthread_mutex_unlock(&shard->lock);
    return found;
}

bool disk_index_has_place(struct disk_index *index, uint64_t key, uint32_t at) {
    struct shard *shard = shard_of(index, key);
    pthread_mutex_lock(&shard->lock);
    const struct entry *entry = find_place(shard, key, at);
    bool found = entry != NULL && !is_hidden(entry);
    pthread_mutex_unlock(&shard->lock);
    return found;
}

void disk_index_mark(struct disk_index *index, uint64_t key, uint32_t at) {
    struct shard *shard = shard_of(index, key);
    pthread_mutex_lock(&shard->lock);
    struct entry *entry = find_place(shard, key, at);
    if (entry != NULL)
        entry->marked = true;
    pthread_mutex_unlock(&shard->lock);
}

struct taken {
    uint64_t key;
    struct disk_place place;
    bool marked;
};

static struct taken *take_segment(struct disk_index *index, struct shard *shard, uint32_t segment,
                                  size_t *count) {
    struct taken *taken = NULL;
    size_t capacity = 0;
    *count = 0;
    pthread_mutex_lock(&shard->lock);
    for (uint32_t number = shard->segments[segment]; number != NONE;) {
        const struct entry *entry = entry_at(shard, number);
        number = entry->next_in_segment;
        if (entry->dead)
            continue;
        if (*count == capacity) {
            capacity = capacity * 2 + 64;
            taken = xrealloc(taken, capacity * sizeof *taken);
        }
        taken[(*count)++] =
            (struct taken){entry->key, disk_index_place_of(index, entry), entry->marked};
    }
    pthread_mutex_unlock(&shard->lock);
    return taken;
}

void disk_index_each_in(struct disk_index *index, uint32_t segment, disk_index_fn *see, void *arg) {
    ASSERT(segment < index->segment_count);
    for (unsigned i = 0; i < SHARDS; i++) {
        size_t count;
        struct taken *taken = take_segment(index, &index->shards[i], segment, &count);
        for (size_t j = 0; j < count; j++)
            see(arg, taken[j].key, &taken[j].place, taken[j].marked);
        free(taken);
    }
}

void disk_index_drop_segment(struct disk_index *index, uint32_t segment) {
    ASSERT(segment < index->segment_count);
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &index->shards[i];
        pthread_mutex_lock(&shard->lock);
        uint32_t number = shard->segments[segment];
        shard->segments[segment] = NONE;
        while (number != NONE) {
            struct entry *entry = entry_at(shard, number);
            uint32_t next = entry->next_in_segment;
            if (!entry->dead)
                unlink_entries(index, shard, entry->key, entry->variant & ~DISK_HIDDEN, entry->at);
            entry->next_in_segment = shard->free;
            shard->free = number;
            number = next;
        }
        pthread_mutex_unlock(&shard->lock);
    }
}

/* The position: the shard above, the number of the entry below. */
unsigned disk_index_walk(struct disk_index *index, uint64_t *position, uint64_t *keys,
                         struct disk_place *places, unsigned most) {
    unsigned count = 0;
    while (count < most && *position >> 32 < SHARDS) {
        struct shard *shard = &index->shards[*position >> 32];
        uint32_t number = (uint32_t)*position;
        pthread_mutex_lock(&shard->lock);
        for (; number < shard->entry_count && count < most; number++) {
            const struct entry *entry = entry_at(shard, number);
            if (entry->dead || is_renewal(entry) || is_hidden(entry))
                continue;
            keys[count] = entry->key;
            places[count++] = disk_index_place_of(index, entry);
        }
        bool done = number >= shard->entry_count;
        pthread_mutex_unlock(&shard->lock);
        *position = done ? ((*position >> 32) + 1) << 32 : (*position >> 32) << 32 | number;
    }
    return count;
}

uint64_t disk_index_count(const struct disk_index *index) {
    return atomic_load_explicit(&index->count, memory_order_relaxed);
}

uint64_t disk_index_memory(struct disk_index *index) {
    uint64_t bytes = sizeof *index;
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &index->shards[i];
        pthread_mutex_lock(&shard->lock);
        bytes += (uint64_t)shard->chunk_count * (CHUNK * sizeof(struct entry) + sizeof(void *)) +
                 ((uint64_t)shard->bucket_count + index->segment_count) * sizeof(uint32_t);
        pthread_mutex_unlock(&shard->lock);
    }
    return bytes;
}
