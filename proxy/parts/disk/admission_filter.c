#include "disk/admission_filter.h"

#include "base/assert.h"

enum { BITS_EACH = 10, PROBES = 4 };

struct admission_filter {
    unsigned magic;
#define ADMISSION_FILTER_MAGIC 0xd0084ee9u
    _Atomic unsigned current;
    uint64_t bits; /* bits of each filter: a power of two */
    uint64_t least, fill;
    _Atomic uint64_t filled;
    _Atomic uint64_t words[]; /* two filters */
};

struct admission_filter *admission_filter_new(unsigned keys, uint64_t fill) {
    uint64_t bits = 64;
    while (bits < (uint64_t)keys * BITS_EACH)
        bits *= 2;
    struct admission_filter *filter =
        xcalloc(1, sizeof *filter + 2 * (size_t)(bits / 64) * sizeof(uint64_t));
    filter->magic = ADMISSION_FILTER_MAGIC;
    filter->bits = bits;
    filter->fill = fill;
    filter->least = fill / keys + (fill % keys != 0);
    return filter;
}

void admission_filter_free(struct admission_filter **filterp) {
    if (*filterp == NULL)
        return;
    CHECK_OBJ(*filterp, ADMISSION_FILTER_MAGIC);
    FREE_OBJ(*filterp);
}

static _Atomic uint64_t *admission_filter_words(struct admission_filter *filter, unsigned which) {
    return filter->words + which * (filter->bits / 64);
}

static uint64_t probe(const struct admission_filter *filter, struct cache_key key, uint64_t i) {
    return (key.high + i * (key.low | 1)) & (filter->bits - 1);
}

/* Sets the key's bits in one filter. Returns true when all of them were already set. */
static bool admission_filter_enter(struct admission_filter *filter, unsigned which,
                                   struct cache_key key) {
    _Atomic uint64_t *words = admission_filter_words(filter, which);
    bool all = true;
    for (uint64_t i = 0; i < PROBES; i++) {
        uint64_t bit = probe(filter, key, i), mask = UINT64_C(1) << bit % 64;
        all =
            (atomic_fetch_or_explicit(&words[bit / 64], mask, memory_order_relaxed) & mask) && all;
    }
    return all;
}

static bool admission_filter_contains(struct admission_filter *filter, unsigned which,
                                      struct cache_key key) {
    const _Atomic uint64_t *words = admission_filter_words(filter, which);
    for (uint64_t i = 0; i < PROBES; i++) {
        uint64_t bit = probe(filter, key, i);
        if ((atomic_load_explicit(&words[bit / 64], memory_order_relaxed) >> bit % 64 & 1) == 0)
            return false;
    }
    return true;
}

static void take_turns(struct admission_filter *filter, unsigned current) {
    unsigned next = 1 - current;
    _Atomic uint64_t *words = admission_filter_words(filter, next);
    for (size_t i = 0; i < filter->bits / 64; i++)
        atomic_store_explicit(&words[i], 0, memory_order_relaxed);
    atomic_store(&filter->filled, 0);
    atomic_store(&filter->current, next);
}

bool admission_filter_has_seen(struct admission_filter *filter, struct cache_key key,
                               uint64_t weight) {
    CHECK_OBJ(filter, ADMISSION_FILTER_MAGIC);
    unsigned current = atomic_load(&filter->current);
    bool before = admission_filter_contains(filter, 1 - current, key);
    if (admission_filter_enter(filter, current, key))
        return true;
    /* A key that the other filter knows is added as well, because it is newer than the keys that
     * will be forgotten. */
    weight = weight < filter->least ? filter->least : weight;
    uint64_t filled = atomic_fetch_add(&filter->filled, weight);
    if (filled < filter->fill && filled + weight >= filter->fill)
        take_turns(filter, current);
    return before;
}
