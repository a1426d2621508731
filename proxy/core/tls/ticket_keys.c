#include "tls/ticket_keys.h"

#include "base/assert.h"
#include "tls/context.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum { KEYS = 3, SECRET = 32 };

struct ticket_key {
    unsigned char name[TICKET_KEYS_NAME], cipher[SECRET], mac[SECRET];
};

struct ticket_keys {
    unsigned magic;
#define TICKET_KEYS_MAGIC 0x71c4e7e5u
    _Atomic unsigned references;
    pthread_mutex_t lock;
    int64_t period;               /* number of the hour whose key is keys[0] */
    struct ticket_key keys[KEYS]; /* the newest one first; random from the beginning */
};

/* Without random bytes there is no TLS at all. */
static void ticket_key_make(struct ticket_key *key) {
    ASSERT(RAND_bytes(key->name, sizeof key->name) == 1 &&
           RAND_priv_bytes(key->cipher, sizeof key->cipher) == 1 &&
           RAND_priv_bytes(key->mac, sizeof key->mac) == 1);
}

/* The newest key moves back one place, and the oldest one is wiped. */
static void ticket_keys_rotate(struct ticket_keys *keys) {
    OPENSSL_cleanse(&keys->keys[KEYS - 1], sizeof *keys->keys);
    memmove(keys->keys + 1, keys->keys, (KEYS - 1) * sizeof *keys->keys);
    ticket_key_make(&keys->keys[0]);
}

struct ticket_keys *ticket_keys_new(int64_t now) {
    struct ticket_keys *keys;
    ALLOC_OBJ(keys, TICKET_KEYS_MAGIC);
    keys->references = 1;
    pthread_mutex_init(&keys->lock, NULL);
    keys->period = now / TICKET_KEYS_PERIOD;
    for (int i = 0; i < KEYS; i++)
        ticket_keys_rotate(keys);
    return keys;
}

struct ticket_keys *ticket_keys_reference(struct ticket_keys *keys) {
    CHECK_OBJ(keys, TICKET_KEYS_MAGIC);
    atomic_fetch_add_explicit(&keys->references, 1, memory_order_relaxed);
    return keys;
}

void ticket_keys_release(struct ticket_keys **keysp) {
    struct ticket_keys *keys = *keysp;
    *keysp = NULL;
    if (keys == NULL)
        return;
    CHECK_OBJ(keys, TICKET_KEYS_MAGIC);
    if (atomic_fetch_sub_explicit(&keys->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&keys->lock);
    OPENSSL_cleanse(keys->keys, sizeof keys->keys);
    FREE_OBJ(keys);
}

/* Rotates as often as periods have passed, also when nobody has come for a long time. */
static void ticket_keys_catch_up(struct ticket_keys *keys, int64_t now) {
    int64_t period = now / TICKET_KEYS_PERIOD;
    for (int i = 0; i < KEYS && keys->period + i < period; i++)
        ticket_keys_rotate(keys);
    if (period > keys->period)
        keys->period = period;
}

/* The place of the key; -1: there is none of that name. */
static int ticket_keys_find(const struct ticket_keys *keys,
                            const unsigned char name[TICKET_KEYS_NAME]) {
    for (int i = 0; i < KEYS; i++)
        if (memcmp(keys->keys[i].name, name, TICKET_KEYS_NAME) == 0)
            return i;
    return -1;
}

/* Copies the newest key, or the one of that name. */
static int ticket_keys_copy(struct ticket_keys *keys, int64_t now, const unsigned char *name,
                            struct ticket_key *key) {
    pthread_mutex_lock(&keys->lock);
    ticket_keys_catch_up(keys, now);
    int place = name != NULL ? ticket_keys_find(keys, name) : 0;
    if (place >= 0)
        *key = keys->keys[place];
    pthread_mutex_unlock(&keys->lock);
    return place;
}

static bool set_contexts(struct ticket_key *key, const unsigned char iv[TICKET_KEYS_IV],
                         EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int protect) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_octet_string(OSSL_MAC_PARAM_KEY, key->mac, sizeof key->mac),
        OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, "SHA256", 0),
        OSSL_PARAM_END,
    };
    return EVP_CipherInit_ex(cipher, algorithm_aes_256_cbc(), NULL, key->cipher, iv, protect) ==
               1 &&
           EVP_MAC_CTX_set_params(mac, parameters) == 1;
}

int ticket_keys_use(struct ticket_keys *keys, int64_t now, unsigned char name[TICKET_KEYS_NAME],
                    unsigned char iv[TICKET_KEYS_IV], EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                    int protect) {
    struct ticket_key key;
    CHECK_OBJ(keys, TICKET_KEYS_MAGIC);
    int place = ticket_keys_copy(keys, now, protect ? NULL : name, &key);
    if (place < 0)
        return 0;
    if (protect)
        memcpy(name, key.name, sizeof key.name);
    bool good = (!protect || RAND_bytes(iv, TICKET_KEYS_IV) == 1) &&
                set_contexts(&key, iv, cipher, mac, protect);
    OPENSSL_cleanse(&key, sizeof key);
    return !good ? -1 : place == 0 ? 1 : 2;
}
