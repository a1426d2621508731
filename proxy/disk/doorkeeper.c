#include "disk/doorkeeper.h"

#include "base/assert.h"

enum {
    BITS = 1 << 23, /* of each filter: 1 MB */
    WORDS = BITS / 64,
    FILL = BITS / 10, /* keys until the filters take turns */
    PROBES = 4,
};

struct doorkeeper {
    unsigned magic;
#define DOORKEEPER_MAGIC 0xd0084ee9u
    _Atomic unsigned current, count;
    _Atomic uint64_t words[2][WORDS];
};

struct doorkeeper *doorkeeper_new(void) {
    struct doorkeeper *doorkeeper;
    ALLOC_OBJ(doorkeeper, DOORKEEPER_MAGIC);
    return doorkeeper;
}

void doorkeeper_free(struct doorkeeper **doorkeeperp) {
    if (*doorkeeperp == NULL)
        return;
    CHECK_OBJ(*doorkeeperp, DOORKEEPER_MAGIC);
    FREE_OBJ(*doorkeeperp);
}

/* Sets the key's bits in one filter; true when all of them were there. */
static bool enter(_Atomic uint64_t *words, struct cache_key key) {
    bool all = true;
    for (uint64_t i = 0; i < PROBES; i++) {
        uint64_t bit = (key.high + i * (key.low | 1)) % BITS, mask = UINT64_C(1) << bit % 64;
        all =
            (atomic_fetch_or_explicit(&words[bit / 64], mask, memory_order_relaxed) & mask) && all;
    }
    return all;
}

static bool contains(const _Atomic uint64_t *words, struct cache_key key) {
    for (uint64_t i = 0; i < PROBES; i++) {
        uint64_t bit = (key.high + i * (key.low | 1)) % BITS;
        if ((atomic_load_explicit(&words[bit / 64], memory_order_relaxed) >> bit % 64 & 1) == 0)
            return false;
    }
    return true;
}

static void take_turns(struct doorkeeper *doorkeeper, unsigned current) {
    unsigned next = 1 - current;
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&doorkeeper->words[next][i], 0, memory_order_relaxed);
    atomic_store(&doorkeeper->count, 0);
    atomic_store(&doorkeeper->current, next);
}

bool doorkeeper_has_seen(struct doorkeeper *doorkeeper, struct cache_key key) {
    CHECK_OBJ(doorkeeper, DOORKEEPER_MAGIC);
    unsigned current = atomic_load(&doorkeeper->current);
    bool before = contains(doorkeeper->words[1 - current], key);
    bool seen = enter(doorkeeper->words[current], key) || before;
    if (!seen && atomic_fetch_add(&doorkeeper->count, 1) + 1 == FILL)
        take_turns(doorkeeper, current);
    return seen;
}
