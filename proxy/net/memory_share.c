#include "net/memory_share.h"

#include "base/assert.h"

struct memory_shares {
    unsigned magic;
#define MEMORY_SHARES_MAGIC 0x3e305a4eu
    unsigned count;
    struct memory_share shares[];
};

struct memory_shares *memory_shares_new(unsigned workers) {
    size_t size = sizeof(struct memory_shares) + workers * sizeof(struct memory_share);
    struct memory_shares *shares = aligned_alloc(alignof(struct memory_shares), size);
    ASSERT(shares != NULL); /* memory is not exhausted at the start of the process */
    shares->magic = MEMORY_SHARES_MAGIC;
    shares->count = workers;
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

size_t memory_share_tell(struct memory_share *share, size_t held) {
    const struct memory_shares *all = share->all;
    size_t sum = 0;
    CHECK_OBJ(all, MEMORY_SHARES_MAGIC);
    if (atomic_load_explicit(&share->held, memory_order_relaxed) != held)
        atomic_store_explicit(&share->held, held, memory_order_relaxed);
    for (unsigned i = 0; i < all->count; i++)
        sum += atomic_load_explicit(&all->shares[i].held, memory_order_relaxed);
    return sum;
}
