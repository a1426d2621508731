#include "cache/name.h"

#include "base/random.h"

#include <xxhash.h>

static struct cache_secret the_secret;

static __attribute__((constructor)) void name_choose_secret(void) {
    random_fill(the_secret.bytes, sizeof the_secret.bytes);
}

struct cache_key cache_key_of(struct slice url) {
    XXH128_hash_t hash =
        XXH3_128bits_withSecret(url.base, url.length, the_secret.bytes, CACHE_SECRET);
    return (struct cache_key){hash.high64, hash.low64};
}

uint64_t cache_hash(struct slice text) {
    return XXH3_64bits_withSecret(text.base, text.length, the_secret.bytes, CACHE_SECRET);
}

const struct cache_secret *cache_secret(void) {
    return &the_secret;
}

void cache_set_secret(const struct cache_secret *secret) {
    the_secret = *secret;
}
