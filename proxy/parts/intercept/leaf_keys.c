/* For leaf_keys_make_ecdsa. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "intercept/leaf_keys.h"

#include "base/assert.h"
#include "base/threads.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <stdatomic.h>

enum { RSA_BITS = 2048 };

struct kept_key {
    EVP_PKEY *key; /* NULL: not made yet */
    int64_t made;
};

struct leaf_keys {
    unsigned magic;
#define LEAF_KEYS_MAGIC 0x1eaf6e75u
    pthread_mutex_t lock;
    pthread_cond_t made; /* an RSA key is there */
    struct thread thread;
    atomic_bool ends;      /* it is to give up */
    bool provenance;       /* it makes a key */
    int64_t provenance_at; /* for `made` of its key */
    struct kept_key kept[LEAF_KEY_KINDS];
};

struct leaf_keys *leaf_keys_new(void) {
    struct leaf_keys *keys;
    ALLOC_OBJ(keys, LEAF_KEYS_MAGIC);
    pthread_mutex_init(&keys->lock, NULL);
    pthread_cond_init(&keys->made, NULL);
    return keys;
}

void leaf_keys_free(struct leaf_keys **keysp) {
    struct leaf_keys *keys = *keysp;
    *keysp = NULL;
    if (keys == NULL)
        return;
    CHECK_OBJ(keys, LEAF_KEYS_MAGIC);
    atomic_store(&keys->ends, true);
    thread_join(&keys->thread);
    for (unsigned i = 0; i < LEAF_KEY_KINDS; i++)
        EVP_PKEY_free(keys->kept[i].key);
    pthread_cond_destroy(&keys->made);
    pthread_mutex_destroy(&keys->lock);
    FREE_OBJ(keys);
}

/* With OpenSSL 3.0, X509_set_pubkey takes 215 microseconds for a key from EVP_PKEY_generate,
 * because it encodes the key and decodes it again by way of the providers. It takes 5 for a key
 * that was made with the functions of OpenSSL 1.1. Handshakes take the same time with both. */
EVP_PKEY *leaf_keys_make_ecdsa(void) {
    EC_KEY *pair = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    EVP_PKEY *key = EVP_PKEY_new();
    ASSERT(pair != NULL && key != NULL);
    ASSERT(EC_KEY_generate_key(pair) == 1);
    ASSERT(EVP_PKEY_assign_EC_KEY(key, pair) == 1);
    return key;
}

/* OpenSSL calls it now and then while it looks for primes. Returns whether to go on. */
static int rsa_on_progress(EVP_PKEY_CTX *context) {
    const struct leaf_keys *keys = EVP_PKEY_CTX_get_app_data(context);
    return atomic_load(&keys->ends) ? 0 : 1;
}

/* NULL: the keys are about to be freed. */
static EVP_PKEY *make_rsa(struct leaf_keys *keys) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    EVP_PKEY *key = NULL;
    ASSERT(context != NULL && EVP_PKEY_keygen_init(context) == 1);
    ASSERT(EVP_PKEY_CTX_set_rsa_keygen_bits(context, RSA_BITS) == 1);
    EVP_PKEY_CTX_set_app_data(context, keys);
    EVP_PKEY_CTX_set_cb(context, rsa_on_progress);
    bool made = EVP_PKEY_generate(context, &key) == 1;
    EVP_PKEY_CTX_free(context);
    ERR_clear_error();
    ASSERT(made || atomic_load(&keys->ends));
    return key;
}

static void keep_key(struct kept_key *kept, EVP_PKEY *key, int64_t now) {
    EVP_PKEY_free(kept->key);
    kept->key = key;
    kept->made = now;
}

static bool is_due(const struct kept_key *kept, int64_t now) {
    return kept->key == NULL || now - kept->made >= LEAF_KEYS_LIFETIME || now < kept->made;
}

static void make_rsa_apart(void *arg) {
    struct leaf_keys *keys;
    CAST_OBJ(keys, arg, LEAF_KEYS_MAGIC);
    EVP_PKEY *key = make_rsa(keys);
    pthread_mutex_lock(&keys->lock);
    keep_key(&keys->kept[LEAF_KEY_RSA], key, keys->provenance_at);
    keys->provenance = false;
    pthread_cond_broadcast(&keys->made);
    pthread_mutex_unlock(&keys->lock);
}

/* Called under the lock. Where no thread can be started, the caller makes the key itself. */
static void start_rsa(struct leaf_keys *keys, int64_t now) {
    struct kept_key *kept = &keys->kept[LEAF_KEY_RSA];
    if (keys->provenance || !is_due(kept, now))
        return;
    thread_join(&keys->thread); /* it has made its key, and has nothing else to do */
    keys->provenance_at = now;
    keys->provenance = thread_start(&keys->thread, make_rsa_apart, keys, "rt-rsa-key");
    if (!keys->provenance && kept->key == NULL)
        keep_key(kept, make_rsa(keys), now);
}

EVP_PKEY *leaf_keys_take(struct leaf_keys *keys, enum leaf_key_kind kind, int64_t now) {
    CHECK_OBJ(keys, LEAF_KEYS_MAGIC);
    struct kept_key *kept = &keys->kept[kind];
    pthread_mutex_lock(&keys->lock);
    start_rsa(keys, now);
    if (kind == LEAF_KEY_ECDSA && is_due(kept, now))
        keep_key(kept, leaf_keys_make_ecdsa(), now);
    while (kept->key == NULL)
        pthread_cond_wait(&keys->made, &keys->lock);
    EVP_PKEY *key = kept->key;
    EVP_PKEY_up_ref(key);
    pthread_mutex_unlock(&keys->lock);
    return key;
}
