#include "net/memory_share.h"

#include "base/assert.h"

#include <malloc.h>

struct memory_shares {
    unsigned magic;
#define MEMORY_SHARES_MAGIC 0x3e305a4eu
    unsigned count;
    _Atomic size_t most; /* that all have held since memory was given back; some may be missed */
    _Atomic uint64_t returns;
    struct memory_share shares[];
};

struct memory_shares *memory_shares_new(unsigned workers) {
    size_t size = sizeof(struct memory_shares) + workers * sizeof(struct memory_share);
    struct memory_shares *shares = aligned_alloc(alignof(struct memory_shares), size);
    ASSERT(shares != NULL); /* memory is not exhausted at the start of the process */
    shares->magic = MEMORY_SHARES_MAGIC;
    shares->count = workers;
    atomic_init(&shares->most, 0);
    atomic_init(&shares->returns, 0);
    for (unsigned i = 0; i < workers; i++) {
        atomic_init(&shares->shares[i].held, 0);
        shares->shares[i].all = shares;
    }
    return shares;
}

void memory_shares_free(struct memory_shares **sharesp) {
    struct memory_shares *shares = *sharesp;
    *sharesp = NULL;
    if (shares == NULL)
        return;
    CHECK_OBJ(shares, MEMORY_SHARES_MAGIC);
    FREE_OBJ(shares);
}

struct memory_share *memory_shares_of(struct memory_shares *shares, unsigned worker) {
    CHECK_OBJ(shares, MEMORY_SHARES_MAGIC);
    ASSERT(worker < shares->count);
    return &shares->shares[worker];
}

static size_t memory_shares_sum(const struct memory_shares *shares) {
    size_t sum = 0;
    for (unsigned i = 0; i < shares->count; i++)
        sum += atomic_load_explicit(&shares->shares[i].held, memory_order_relaxed);
    return sum;
}

size_t memory_share_tell(struct memory_share *share, size_t held) {
    struct memory_shares *all = share->all;
    CHECK_OBJ(all, MEMORY_SHARES_MAGIC);
    if (atomic_load_explicit(&share->held, memory_order_relaxed) != held)
        atomic_store_explicit(&share->held, held, memory_order_relaxed);
    size_t sum = memory_shares_sum(all);
    if (sum > atomic_load_explicit(&all->most, memory_order_relaxed))
        atomic_store_explicit(&all->most, sum, memory_order_relaxed);
    return sum;
}

bool memory_shares_give_back(struct memory_shares *shares) {
    CHECK_OBJ(shares, MEMORY_SHARES_MAGIC);
    size_t held = memory_shares_sum(shares);
    if (atomic_load_explicit(&shares->most, memory_order_relaxed) < held + MEMORY_GIVE_BACK)
        return false;
    atomic_store_explicit(&shares->most, held, memory_order_relaxed);
    malloc_trim(0);
    atomic_fetch_add_explicit(&shares->returns, 1, memory_order_relaxed);
    return true;
}

uint64_t memory_shares_returns(const struct memory_shares *shares) {
    CHECK_OBJ(shares, MEMORY_SHARES_MAGIC);
    return atomic_load_explicit(&shares->returns, memory_order_relaxed);
}
