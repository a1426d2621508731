/*
 * The leaves that were minted lately, for all workers.
 *
 *     struct leaf_cache *cache = leaf_cache_new(4096);
 *
 *     struct leaf_request request = {.name = name, .rsa = !hello.verifies_ecdsa_p256};
 *     struct leaf *leaf = leaf_cache_take(cache, settings->authority, &request, time(NULL), error);
 *     if (leaf == NULL) ...                          no certificate is made for such a name
 *     leaf_release(&leaf);
 *
 * A leaf is found by its whole name, its kind of key, and whether it is refusable. It is minted
 * anew when it was signed by another authority than the one asked for (after a reload), when its
 * key was replaced, when it is valid longer than the origin's certificate, and on its last day if a
 * new one would live longer. Nothing is stored on disk.
 *
 * Minting happens in the calling thread, and outside of locks.
 *
 * Threads: any. Units: seconds since 1970.
 */
#ifndef RETORT_INTERCEPT_LEAF_CACHE_H
#define RETORT_INTERCEPT_LEAF_CACHE_H

#include "intercept/leaf.h"

#include <stddef.h>

struct leaf_cache_statistics {
    uint64_t count;   /* of leaves in the cache */
    uint64_t found;   /* how often a leaf was there */
    uint64_t minted;  /* how often one was made */
    uint64_t evicted; /* to make room for another one */
    uint64_t failed;  /* no leaf could be made */
};

struct leaf_cache;

/* The limit is the number of leaves, at least 1. */
struct leaf_cache *leaf_cache_new(size_t limit);
void leaf_cache_free(struct leaf_cache **cachep);
void leaf_cache_set_limit(struct leaf_cache *cache, size_t limit);
/* Removes all leaves of other authorities; for a reload. NULL: removes all of them. */
void leaf_cache_keep_authority(struct leaf_cache *cache, const struct authority *authority);
/* The caller releases the leaf. NULL: `error` has a sentence that begins in lower case. */
struct leaf *leaf_cache_take(struct leaf_cache *cache, struct authority *authority,
                             const struct leaf_request *request, int64_t now,
                             char error[LEAF_ERROR]);
void leaf_cache_statistics(struct leaf_cache *cache, struct leaf_cache_statistics *statistics);

#endif
