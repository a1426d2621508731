/*
 * Each stored object has a name: a URL, normalised and reduced to the parts that matter according
 * to the policies (key.h). The key is a hash of the name, and tells where to look for the object.
 *
 *     struct cache_name name = cache_name_of(url);
 *     if (object_has_name(object, &name)) ...
 *
 * An object that is found by its key is compared with the whole name before it is used. If two
 * names have the same key, that costs a comparison, and no client ever gets the response of the
 * other name.
 *
 * The hash is XXH3 with 128 bits and a secret. Without the secret somebody could compute a URL of
 * one host that has the key of another host's URL. The secret is random for the process, unless a
 * volume of the cache on disk brings the secret that its records were written with (disk/volume.h).
 * No log and no page shows the secret.
 *
 * Threads: any; the secret is set before other threads start. Memory: a name points to its URL.
 */
#ifndef RETORT_CACHE_NAME_H
#define RETORT_CACHE_NAME_H

#include "base/slice.h"

enum { CACHE_SECRET = 192 };

struct cache_secret {
    unsigned char bytes[CACHE_SECRET];
};

struct cache_key {
    uint64_t high, low;
};

struct cache_name {
    struct slice url;
    struct cache_key key;
};

static inline bool cache_key_equal(struct cache_key a, struct cache_key b) {
    return a.high == b.high && a.low == b.low;
}

/* The key of a normalised URL. */
struct cache_key cache_key_of(struct slice url);

static inline struct cache_name cache_name_of(struct slice url) {
    return (struct cache_name){.url = url, .key = cache_key_of(url)};
}

/* A hash of any text with the same secret. It has nothing in common with keys. */
uint64_t cache_hash(struct slice text);

const struct cache_secret *cache_secret(void);
/* All keys that are computed after this call are different. */
void cache_set_secret(const struct cache_secret *secret);

#endif
