#include "inject/text_cache.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>

struct entry {
    char *bytes; /* the key, then the text; NULL: free */
    size_t key_length, text_length;
    int64_t expires;
};

struct text_cache {
    unsigned magic;
#define TEXT_CACHE_MAGIC 0x54784361u
    pthread_mutex_t lock;
    struct entry entries[TEXT_CACHE_SLOTS];
};

struct text_cache *text_cache_create(void) {
    struct text_cache *cache;
    ALLOC_OBJ(cache, TEXT_CACHE_MAGIC);
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void text_cache_free(struct text_cache **cachep) {
    struct text_cache *cache = *cachep;
    *cachep = NULL;
    if (cache == NULL)
        return;
    CHECK_OBJ(cache, TEXT_CACHE_MAGIC);
    for (unsigned i = 0; i < TEXT_CACHE_SLOTS; i++)
        free(cache->entries[i].bytes);
    pthread_mutex_destroy(&cache->lock);
    FREE_OBJ(cache);
}

/* FNV-1a. */
static struct entry *slot_of(struct text_cache *cache, struct slice key) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < key.length; i++)
        hash = (hash ^ (unsigned char)key.base[i]) * 0x100000001b3u;
    return &cache->entries[(hash ^ hash >> 32) % TEXT_CACHE_SLOTS];
}

bool text_cache_find(struct text_cache *cache, struct slice key, int64_t now,
                     char room[TEXT_CACHE_TEXT_MAX], size_t *length) {
    CHECK_OBJ(cache, TEXT_CACHE_MAGIC);
    pthread_mutex_lock(&cache->lock);
    const struct entry *entry = slot_of(cache, key);
    bool found = entry->bytes != NULL && entry->expires > now &&
                 slice_equal(slice_make(entry->bytes, entry->key_length), key);
    if (found) {
        *length = entry->text_length;
        memcpy(room, entry->bytes + entry->key_length, entry->text_length);
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

void text_cache_store(struct text_cache *cache, struct slice key, struct slice text,
                      int64_t expires) {
    CHECK_OBJ(cache, TEXT_CACHE_MAGIC);
    if (text.length > TEXT_CACHE_TEXT_MAX)
        return;
    char *bytes = xmalloc(key.length + text.length + 1);
    memcpy(bytes, key.base, key.length);
    if (text.length > 0)
        memcpy(bytes + key.length, text.base, text.length);
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = slot_of(cache, key);
    free(entry->bytes);
    *entry = (struct entry){bytes, key.length, text.length, expires};
    pthread_mutex_unlock(&cache->lock);
}
