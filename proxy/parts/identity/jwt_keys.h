/*
 * The keys that verify signed tokens, from a file: public keys and certificates in PEM, a JWKS
 * (RFC 7517), or one secret.
 *
 *     struct jwt_keys *keys = jwt_keys_parse(text, "/etc/retort/tokens.jwks", error, sizeof error);
 *     const struct jwt_key *key = NULL;
 *     while ((key = jwt_keys_next(keys, key, JWT_RS256, kid)) != NULL)
 *         if (jwt_key_verifies(key, JWT_RS256, signed_text, signature)) ...
 *     jwt_keys_free(&keys);
 *
 * A key has the algorithms that its kind allows, and no others, whatever a token says: a public key
 * never becomes the secret of HS256, and there is no algorithm "none". A key of a JWKS with "alg"
 * has that one alone.
 *
 * Threads: read-only after jwt_keys_parse. Errors: what is wrong, without the path and the key.
 */
#ifndef RETORT_IDENTITY_JWT_KEYS_H
#define RETORT_IDENTITY_JWT_KEYS_H

#include "base/slice.h"

/* RFC 7518 §3.1, RFC 8037 §3.1. */
enum jwt_algorithm {
    JWT_RS256,
    JWT_RS384,
    JWT_RS512,
    JWT_PS256,
    JWT_ES256,
    JWT_ES384,
    JWT_EDDSA,
    JWT_HS256,
    JWT_ALGORITHMS, /* none of them */
};

/* Keys of a file; more are refused. */
enum { JWT_KEYS_MAX = 64 };

struct jwt_keys;
struct jwt_key;

/* The text of a file of that name. NULL: an error. */
struct jwt_keys *jwt_keys_parse(struct slice text, const char *path, char *error,
                                size_t error_size);
void jwt_keys_free(struct jwt_keys **keysp);
/* Is one of them a secret, which nobody else may read? */
bool jwt_keys_have_secret(const struct jwt_keys *keys);
/* The algorithm that a token names; JWT_ALGORITHMS: there is none of this name here. */
enum jwt_algorithm jwt_algorithm_find(struct slice name);
/* The next key after `after` (NULL: the first one) for the algorithm; if the token has a key id, and
 * a key has one too, they must be equal. NULL: there is none. */
const struct jwt_key *jwt_keys_next(const struct jwt_keys *keys, const struct jwt_key *after,
                                    enum jwt_algorithm algorithm, struct slice id);
bool jwt_key_verifies(const struct jwt_key *key, enum jwt_algorithm algorithm, struct slice text,
                      struct slice signature);

#endif
