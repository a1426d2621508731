#include "base/secret_hash.h"

#include "base/random.h"

#include <xxhash.h>

enum { SECRET = 192 };

static unsigned char secret[SECRET];

static __attribute__((constructor)) void secret_hash_choose(void) {
    random_fill(secret, sizeof secret);
}

uint64_t secret_hash(struct slice text) {
    return XXH3_64bits_withSecret(text.base, text.length, secret, sizeof secret);
}
