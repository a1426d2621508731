#include "intercept/leaf_cache.h"

#include "base/assert.h"
#include "base/shared_table.h"
#include "intercept/leaf_keys.h"

#include <pthread.h>
#include <stdio.h>

enum { LAST_DAY = 24 * 3600, UNTRUSTED_LIFETIME = 365 * 24 * 3600 };
enum { KEY_ROOM = LEAF_NAME_ROOM + 2 };

struct cached_leaf {
    struct shared_entry entry;
    unsigned magic;
#define CACHED_LEAF_MAGIC 0xcac4ed1eu
    struct leaf *leaf;
    char key[];
};

struct leaf_cache {
    unsigned magic;
#define LEAF_CACHE_MAGIC 0x1eafcac4u
    struct leaf_keys *keys;
    struct shared_table *table;
    pthread_mutex_t lock;        /* for the next one */
    struct authority *untrusted; /* signs refusable leaves; NULL: not made yet */
    _Atomic uint64_t found, minted, evicted, failed;
};

static void cached_leaf_on_removal(struct shared_entry *entry) {
    struct cached_leaf *cached = CONTAINER_OF(entry, struct cached_leaf, entry);
    CHECK_OBJ(cached, CACHED_LEAF_MAGIC);
    leaf_release(&cached->leaf);
    FREE_OBJ(cached);
}

struct leaf_cache *leaf_cache_new(size_t limit) {
    struct leaf_cache *cache;
    ALLOC_OBJ(cache, LEAF_CACHE_MAGIC);
    cache->keys = leaf_keys_new();
    cache->table = shared_table_new(limit, cached_leaf_on_removal);
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void leaf_cache_free(struct leaf_cache **cachep) {
    struct leaf_cache *cache = *cachep;
    *cachep = NULL;
    if (cache == NULL)
        return;
    CHECK_OBJ(cache, LEAF_CACHE_MAGIC);
    shared_table_free(&cache->table);
    leaf_keys_free(&cache->keys);
    authority_release(&cache->untrusted);
    pthread_mutex_destroy(&cache->lock);
    FREE_OBJ(cache);
}

void leaf_cache_set_limit(struct leaf_cache *cache, size_t limit) {
    CHECK_OBJ(cache, LEAF_CACHE_MAGIC);
    shared_table_set_limit(cache->table, limit);
}

static bool is_of_authority(const struct shared_entry *entry, void *authority) {
    const struct cached_leaf *cached = CONTAINER_OF(entry, const struct cached_leaf, entry);
    return authority_equal(cached->leaf->authority, authority);
}

void leaf_cache_keep_authority(struct leaf_cache *cache, const struct authority *authority) {
    CHECK_OBJ(cache, LEAF_CACHE_MAGIC);
    shared_table_remove(cache->table, is_of_authority, (void *)authority);
}

/* The caller releases it. */
static struct authority *take_untrusted(struct leaf_cache *cache, int64_t now) {
    pthread_mutex_lock(&cache->lock);
    if (cache->untrusted == NULL || cache->untrusted->expires - now < LEAF_LIFETIME) {
        authority_release(&cache->untrusted);
        cache->untrusted = authority_make("This server could not be verified", "Retort",
                                          now - LEAF_BACK_DATED, now + UNTRUSTED_LIFETIME);
    }
    struct authority *untrusted = authority_reference(cache->untrusted);
    pthread_mutex_unlock(&cache->lock);
    return untrusted;
}

/* What the request, with its name in canonical form, is found by. */
static struct slice leaf_cache_key_of(char room[KEY_ROOM], const struct leaf_request *request) {
    room[0] = request->rsa ? 'r' : 'e';
    room[1] = request->refusable ? '!' : ' ';
    return slice_make(room, (size_t)(slice_put(room + 2, request->name) - room));
}

static bool leaf_is_current(const struct leaf *leaf, const struct authority *authority,
                            const EVP_PKEY *key, const struct leaf_request *request, int64_t now) {
    if (leaf->key != key || !authority_equal(leaf->authority, authority) || leaf->expires <= now)
        return false;
    if (request->not_after > 0 && leaf->expires > request->not_after)
        return false;
    return leaf->expires - now > LAST_DAY || leaf->expires >= leaf_expiry(authority, request, now);
}

static struct leaf *find_leaf(struct leaf_cache *cache, const struct authority *authority,
                              const EVP_PKEY *key, const struct leaf_request *request,
                              int64_t now) {
    char room[KEY_ROOM];
    struct slice name = leaf_cache_key_of(room, request);
    struct leaf *leaf = NULL;
    struct shared_part *part = shared_table_lock(cache->table, name, 0);
    struct shared_entry *entry = shared_part_find(part);
    if (entry != NULL) {
        struct cached_leaf *cached = CONTAINER_OF(entry, struct cached_leaf, entry);
        CHECK_OBJ(cached, CACHED_LEAF_MAGIC);
        if (leaf_is_current(cached->leaf, authority, key, request, now))
            leaf = leaf_reference(cached->leaf);
    }
    shared_part_unlock(part);
    return leaf;
}

static void keep_leaf(struct leaf_cache *cache, const struct leaf_request *request,
                      struct leaf *leaf) {
    char room[KEY_ROOM];
    struct slice name = leaf_cache_key_of(room, request);
    struct cached_leaf *cached = xcalloc(1, sizeof *cached + name.length);
    cached->magic = CACHED_LEAF_MAGIC;
    cached->leaf = leaf_reference(leaf);
    struct shared_part *part = shared_table_lock(cache->table, name, 0);
    struct shared_entry *old = shared_part_find(part);
    if (old != NULL)
        shared_part_remove(part, old);
    cache->evicted += shared_part_put(part, &cached->entry, slice_copy(cached->key, name), 1);
    shared_part_unlock(part);
}

static struct leaf *find_or_mint(struct leaf_cache *cache, struct authority *authority,
                                 const struct leaf_request *request, int64_t now,
                                 char error[LEAF_ERROR]) {
    EVP_PKEY *key = leaf_keys_take(cache->keys, request->rsa ? LEAF_KEY_RSA : LEAF_KEY_ECDSA, now);
    struct leaf *leaf = find_leaf(cache, authority, key, request, now);
    if (leaf != NULL) {
        cache->found++;
    } else if ((leaf = leaf_mint(authority, key, request, now, error)) != NULL) {
        cache->minted++;
        keep_leaf(cache, request, leaf);
    }
    EVP_PKEY_free(key);
    return leaf;
}

struct leaf *leaf_cache_take(struct leaf_cache *cache, struct authority *authority,
                             const struct leaf_request *request, int64_t now,
                             char error[LEAF_ERROR]) {
    char name[LEAF_NAME_ROOM];
    struct leaf *leaf = NULL;
    CHECK_OBJ(cache, LEAF_CACHE_MAGIC);
    if (leaf_put_name(name, request->name)) {
        struct leaf_request canonical = *request;
        struct authority *signer =
            request->refusable ? take_untrusted(cache, now) : authority_reference(authority);
        canonical.name = slice_from(name);
        leaf = find_or_mint(cache, signer, &canonical, now, error);
        authority_release(&signer);
    } else {
        snprintf(error, LEAF_ERROR, "the name is no host name, so no certificate is made for it");
    }
    cache->failed += leaf == NULL;
    return leaf;
}

void leaf_cache_statistics(struct leaf_cache *cache, struct leaf_cache_statistics *statistics) {
    CHECK_OBJ(cache, LEAF_CACHE_MAGIC);
    *statistics = (struct leaf_cache_statistics){
        .count = shared_table_count(cache->table),
        .found = cache->found,
        .minted = cache->minted,
        .evicted = cache->evicted,
        .failed = cache->failed,
    };
}
