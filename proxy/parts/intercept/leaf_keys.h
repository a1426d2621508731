/*
 * The private keys of minted certificates: one P-256 key for all of them, and one RSA key for those
 * of clients that can't verify ECDSA.
 *
 *     struct leaf_keys *keys = leaf_keys_new();
 *     EVP_PKEY *key = leaf_keys_take(keys, LEAF_KEY_ECDSA, time(NULL));
 *     ...
 *     EVP_PKEY_free(key);
 *     leaf_keys_free(&keys);
 *
 * A key is replaced after LEAF_KEYS_LIFETIME seconds; certificates that were made with the old one
 * keep it. It exists in memory only.
 *
 * An RSA key takes about a tenth of a second to make, so a thread of its own makes it. The thread
 * starts with the first key that anybody takes. Whoever needs the RSA key before it is there waits,
 * which can only happen right after the start. Its replacement is made while the old one is still
 * in use.
 * leaf_keys_free makes the thread give up and waits for it.
 *
 * Threads: any, but leaf_keys_free is the last call. Units: seconds since 1970.
 */
#ifndef RETORT_INTERCEPT_LEAF_KEYS_H
#define RETORT_INTERCEPT_LEAF_KEYS_H

#include <openssl/evp.h>
#include <stdint.h>

enum { LEAF_KEYS_LIFETIME = 24 * 3600 };

enum leaf_key_kind { LEAF_KEY_ECDSA, LEAF_KEY_RSA, LEAF_KEY_KINDS };

struct leaf_keys;

struct leaf_keys *leaf_keys_new(void);
void leaf_keys_free(struct leaf_keys **keysp);
/* The caller frees its reference. */
EVP_PKEY *leaf_keys_take(struct leaf_keys *keys, enum leaf_key_kind kind, int64_t now);
/* Makes a P-256 key; see the comment there why leaves need one from this function. */
EVP_PKEY *leaf_keys_make_ecdsa(void);

#endif
