#include "disk/doorkeeper.h"

#include "base/assert.h"

enum { BITS_EACH = 10, PROBES = 4 };

struct doorkeeper {
    unsigned magic;
#define DOORKEEPER_MAGIC 0xd0084ee9u
    _Atomic unsigned current;
    uint64_t bits; /* of each filter: a power of two */
    uint64_t least, fill;
    _Atomic uint64_t filled;
    _Atomic uint64_t words[]; /* two filters */
};

struct doorkeeper *doorkeeper_new(unsigned keys, uint64_t fill) {
    uint64_t bits = 64;
    while (bits < (uint64_t)keys * BITS_EACH)
        bits *= 2;
    struct doorkeeper *doorkeeper =
        xcalloc(1, sizeof *doorkeeper + 2 * (size_t)(bits / 64) * sizeof(uint64_t));
    doorkeeper->magic = DOORKEEPER_MAGIC;
    doorkeeper->bits = bits;
    doorkeeper->fill = fill;
    doorkeeper->least = fill / keys + (fill % keys != 0);
    return doorkeeper;
}

void doorkeeper_free(struct doorkeeper **doorkeeperp) {
    if (*doorkeeperp == NULL)
        return;
    CHECK_OBJ(*doorkeeperp, DOORKEEPER_MAGIC);
    FREE_OBJ(*doorkeeperp);
}

static _Atomic uint64_t *filter(struct doorkeeper *doorkeeper, unsigned which) {
    return doorkeeper->words + which * (doorkeeper->bits / 64);
}

static uint64_t probe(const struct doorkeeper *doorkeeper, struct cache_key key, uint64_t i) {
    return (key.high + i * (key.low | 1)) & (doorkeeper->bits - 1);
}

/* Sets the key's bits in one filter; true when all of them were there. */
static bool doorkeeper_enter(struct doorkeeper *doorkeeper, unsigned which, struct cache_key key) {
    _Atomic uint64_t *words = filter(doorkeeper, which);
    bool all = true;
    for (uint64_t i = 0; i < PROBES; i++) {
        uint64_t bit = probe(doorkeeper, key, i), mask = UINT64_C(1) << bit % 64;
        all =
            (atomic_fetch_or_explicit(&words[bit / 64], mask, memory_order_relaxed) & mask) && all;
    }
    return all;
}

static bool doorkeeper_contains(struct doorkeeper *doorkeeper, unsigned which,
                                struct cache_key key) {
    const _Atomic uint64_t *words = filter(doorkeeper, which);
    for (uint64_t i = 0; i < PROBES; i++) {
        uint64_t bit = probe(doorkeeper, key, i);
        if ((atomic_load_explicit(&words[bit / 64], memory_order_relaxed) >> bit % 64 & 1) == 0)
            return false;
    }
    return true;
}

static void take_turns(struct doorkeeper *doorkeeper, unsigned current) {
    unsigned next = 1 - current;
    _Atomic uint64_t *words = filter(doorkeeper, next);
    for (size_t i = 0; i < doorkeeper->bits / 64; i++)
        atomic_store_explicit(&words[i], 0, memory_order_relaxed);
    atomic_store(&doorkeeper->filled, 0);
    atomic_store(&doorkeeper->current, next);
}

bool doorkeeper_has_seen(struct doorkeeper *doorkeeper, struct cache_key key, uint64_t weight) {
    CHECK_OBJ(doorkeeper, DOORKEEPER_MAGIC);
    unsigned current = atomic_load(&doorkeeper->current);
    bool before = doorkeeper_contains(doorkeeper, 1 - current, key);
    if (doorkeeper_enter(doorkeeper, current, key))
        return true;
    /* Also one that the other filter knows: it comes after those that are to be forgotten. */
    weight = weight < doorkeeper->least ? doorkeeper->least : weight;
    uint64_t filled = atomic_fetch_add(&doorkeeper->filled, weight);
    if (filled < doorkeeper->fill && filled + weight >= doorkeeper->fill)
        take_turns(doorkeeper, current);
    return before;
}
