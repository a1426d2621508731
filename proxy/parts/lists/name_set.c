#include "lists/name_set.h"

#include "base/assert.h"

#include <stdlib.h>
#include <xxhash.h>

enum { SLOTS_LEAST = 64, BLOCK_LEAST = 4096, FILTER_BITS = 8 };

/* An entry of the block: flags, length, bytes. */
enum { FLAGS_AT = 0, LENGTH_AT = 1, BYTES_AT = 1 + (int)sizeof(uint32_t) };

struct name_set {
    unsigned magic;
#define NAME_SET_MAGIC 0x4e534554u
    bool any_below;
    char *block; /* entries one behind the other; the first begins at 1 */
    size_t used, capacity;
    uint32_t *slots;  /* where entries stand in the block; 0: free. At least half are free. */
    uint64_t *filter; /* a bit for the hash of each name, FILTER_BITS for each slot */
    size_t count, mask;
};

struct name_set *name_set_new(void) {
    struct name_set *set;
    ALLOC_OBJ(set, NAME_SET_MAGIC);
    set->used = 1;
    set->mask = SLOTS_LEAST - 1;
    set->slots = xcalloc(SLOTS_LEAST, sizeof *set->slots);
    set->filter = xcalloc(SLOTS_LEAST * FILTER_BITS / 64, sizeof *set->filter);
    return set;
}

void name_set_free(struct name_set **setp) {
    struct name_set *set = *setp;
    *setp = NULL;
    if (set == NULL)
        return;
    CHECK_OBJ(set, NAME_SET_MAGIC);
    free(set->block);
    free(set->slots);
    free(set->filter);
    FREE_OBJ(set);
}

static uint64_t name_set_hash(struct slice name) {
    return XXH3_64bits(name.base, name.length);
}

static struct slice name_set_name(const struct name_set *set, uint32_t at) {
    uint32_t length;
    memcpy(&length, set->block + at + LENGTH_AT, sizeof length);
    return slice_make(set->block + at + BYTES_AT, length);
}

static size_t name_set_bit(const struct name_set *set, uint64_t hash) {
    return (size_t)(hash >> 32) & (set->mask * FILTER_BITS + FILTER_BITS - 1);
}

static void note_in_filter(struct name_set *set, uint64_t hash) {
    size_t bit = name_set_bit(set, hash);
    set->filter[bit / 64] |= UINT64_C(1) << bit % 64;
}

static bool name_set_may_have(const struct name_set *set, uint64_t hash) {
    size_t bit = name_set_bit(set, hash);
    return (set->filter[bit / 64] >> bit % 64 & 1) != 0;
}

/* The slot of the name, or the free one where it belongs. */
static uint32_t *name_set_slot(const struct name_set *set, struct slice name, uint64_t hash) {
    size_t slot = (size_t)hash & set->mask;
    while (set->slots[slot] != 0 && !slice_equal(name_set_name(set, set->slots[slot]), name))
        slot = (slot + 1) & set->mask;
    return &set->slots[slot];
}

static void put_into_table(struct name_set *set, uint32_t at) {
    uint64_t hash = name_set_hash(name_set_name(set, at));
    size_t slot = (size_t)hash & set->mask;
    while (set->slots[slot] != 0)
        slot = (slot + 1) & set->mask;
    set->slots[slot] = at;
    note_in_filter(set, hash);
}

static void grow_table(struct name_set *set) {
    size_t slots = (set->mask + 1) * 4;
    free(set->slots);
    free(set->filter);
    set->mask = slots - 1;
    set->slots = xcalloc(slots, sizeof *set->slots);
    set->filter = xcalloc(slots * FILTER_BITS / 64, sizeof *set->filter);
    for (size_t at = 1; at < set->used;) {
        struct slice name = name_set_name(set, (uint32_t)at);
        put_into_table(set, (uint32_t)at);
        at += BYTES_AT + name.length;
    }
}

static void name_set_make_room(struct name_set *set, size_t more) {
    if (set->capacity - set->used >= more && set->capacity > 0)
        return;
    while (set->capacity < set->used + more)
        set->capacity = set->capacity == 0 ? BLOCK_LEAST : set->capacity * 2;
    set->block = xrealloc(set->block, set->capacity);
}

bool name_set_add(struct name_set *set, struct slice name, unsigned matches) {
    CHECK_OBJ(set, NAME_SET_MAGIC);
    uint64_t hash = name_set_hash(name);
    size_t size = BYTES_AT + name.length;
    uint32_t length = (uint32_t)name.length, *slot = name_set_slot(set, name, hash);
    if (name.length > UINT32_MAX || set->used + size > UINT32_MAX)
        return false;
    set->any_below = set->any_below || (matches & NAME_SET_BELOW) != 0;
    if (*slot != 0) {
        set->block[*slot + FLAGS_AT] |= (char)matches;
        return true;
    }
    name_set_make_room(set, size);
    char *entry = set->block + set->used;
    entry[FLAGS_AT] = (char)matches;
    memcpy(entry + LENGTH_AT, &length, sizeof length);
    slice_put(entry + BYTES_AT, name);
    *slot = (uint32_t)set->used;
    note_in_filter(set, hash);
    set->used += size;
    if (++set->count * 2 > set->mask)
        grow_table(set);
    return true;
}

size_t name_set_count(const struct name_set *set) {
    CHECK_OBJ(set, NAME_SET_MAGIC);
    return set->count;
}

static bool has_as(const struct name_set *set, struct slice name, unsigned matches) {
    uint64_t hash = name_set_hash(name);
    if (!name_set_may_have(set, hash))
        return false;
    uint32_t at = *name_set_slot(set, name, hash);
    return at != 0 && ((unsigned char)set->block[at + FLAGS_AT] & matches) != 0;
}

bool name_set_has(const struct name_set *set, struct slice name) {
    CHECK_OBJ(set, NAME_SET_MAGIC);
    return has_as(set, name, NAME_SET_ITSELF);
}

/* Does it end as an IPv4 address does, or has it the colon of an IPv6 address? The last label of a
 * domain is never a number. */
static bool name_is_address(struct slice host) {
    char last = host.length > 0 ? host.base[host.length - 1] : '\0';
    const char *dot = host.length > 0 ? memrchr(host.base, '.', host.length) : NULL;
    if (last < '0' || last > '9')
        return host.length > 0 && memchr(host.base, ':', host.length) != NULL;
    for (const char *c = dot == NULL ? host.base : dot + 1; c < host.base + host.length; c++)
        if (*c < '0' || *c > '9')
            return memchr(host.base, ':', host.length) != NULL;
    return true;
}

bool name_set_has_host(const struct name_set *set, struct slice host) {
    CHECK_OBJ(set, NAME_SET_MAGIC);
    if (has_as(set, host, NAME_SET_ITSELF))
        return true;
    if (!set->any_below || name_is_address(host))
        return false;
    for (size_t i = 1; i + 1 < host.length; i++)
        if (host.base[i] == '.' &&
            has_as(set, slice_make(host.base + i + 1, host.length - i - 1), NAME_SET_BELOW))
            return true;
    return false;
}
