/*
 * What is stored has a name: a URL, normalised and reduced to what the policies let matter (key.h).
 * Its key, a hash of that, says where to look for it.
 *
 *     struct cache_name name = cache_name_of(url);
 *     if (object_has_name(object, &name)) ...
 *
 * Whatever is found by a key is compared with the whole name before it is used: that two names have
 * one key costs a comparison, and never shows anybody what is another's.
 *
 * The hash is XXH3 with 128 bits and a secret: without it a URL of one host could be computed that
 * has the key of another's. The secret is random for the process, unless a volume of the cache on
 * disk brings the one that its records were written with (disk/volume.h). It is in no log and on no
 * page.
 *
 * Threads: any; the secret is set before there are others. Memory: a name points to its URL.
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

/* Another hash of any text, with the same secret: it has nothing in common with keys. */
uint64_t cache_hash(struct slice text);

const struct cache_secret *cache_secret(void);
/* From here on keys are other ones. */
void cache_set_secret(const struct cache_secret *secret);

#endif
