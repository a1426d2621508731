#include "identity/jwt_keys.h"

#include "base/assert.h"
#include "base/base64.h"

#include <jansson.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>

enum { SECRET_MIN = 32, SECRET_MAX = 4096, RSA_MIN = 2048, NUMBER_MAX = 1024, ID_MAX = 255 };

struct jwt_key {
    char *id;            /* NULL: none */
    unsigned algorithms; /* a bit for each */
    EVP_PKEY *public;    /* NULL: a secret */
    unsigned char *secret;
    size_t secret_length;
};

struct jwt_keys {
    unsigned magic;
#define JWT_KEYS_MAGIC 0x3174e450u
    struct jwt_key keys[JWT_KEYS_MAX];
    size_t count;
};

static const struct {
    const char *name;
    const EVP_MD *(*digest)(void); /* NULL: the signature has its own */
    size_t half;                   /* of ECDSA: bytes of each of its two numbers */
} algorithms[JWT_ALGORITHMS] = {
    [JWT_RS256] = {"RS256", EVP_sha256, 0},  [JWT_RS384] = {"RS384", EVP_sha384, 0},
    [JWT_RS512] = {"RS512", EVP_sha512, 0},  [JWT_PS256] = {"PS256", EVP_sha256, 0},
    [JWT_ES256] = {"ES256", EVP_sha256, 32}, [JWT_ES384] = {"ES384", EVP_sha384, 48},
    [JWT_EDDSA] = {"EdDSA", NULL, 0},        [JWT_HS256] = {"HS256", EVP_sha256, 0},
};

#define BIT(algorithm) (1u << (algorithm))

static bool keys_fail(char *error, size_t error_size, const char *what) {
    ERR_clear_error();
    snprintf(error, error_size, "%s", what);
    return false;
}

enum jwt_algorithm jwt_algorithm_find(struct slice name) {
    size_t i = 0;
    while (i < JWT_ALGORITHMS && !slice_equal(name, slice_from(algorithms[i].name)))
        i++;
    return (enum jwt_algorithm)i;
}

/* The algorithms of a public key; 0: it can't be used. */
static unsigned algorithms_of(const EVP_PKEY *key) {
    char curve[40] = "";
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        return EVP_PKEY_get_bits(key) < RSA_MIN
                   ? 0
                   : BIT(JWT_RS256) | BIT(JWT_RS384) | BIT(JWT_RS512) | BIT(JWT_PS256);
    case EVP_PKEY_EC:
        if (EVP_PKEY_get_group_name(key, curve, sizeof curve, NULL) != 1)
            return 0;
        if (strcmp(curve, "prime256v1") == 0 || strcmp(curve, "P-256") == 0)
            return BIT(JWT_ES256);
        return strcmp(curve, "secp384r1") == 0 || strcmp(curve, "P-384") == 0 ? BIT(JWT_ES384) : 0;
    case EVP_PKEY_ED25519: return BIT(JWT_EDDSA);
    default: return 0;
    }
}

static struct jwt_key *keys_add(struct jwt_keys *keys, char *error, size_t error_size) {
    if (keys->count == JWT_KEYS_MAX) {
        keys_fail(error, error_size, "there are more than 64 keys: remove those that sign no more");
        return NULL;
    }
    return &keys->keys[keys->count++];
}

/* Takes the key over. */
static bool add_public(struct jwt_keys *keys, EVP_PKEY *public, const char *id, unsigned only,
                       char *error, size_t error_size) {
    unsigned allowed = algorithms_of(public) & only;
    struct jwt_key *key = allowed != 0 ? keys_add(keys, error, error_size) : NULL;
    if (key == NULL) {
        EVP_PKEY_free(public);
        return allowed != 0 ||
               keys_fail(
                   error, error_size,
                   "a key can't be used: there must be an RSA key of at least 2048 bits, or a "
                   "key on P-256, P-384 or Ed25519, and its \"alg\" must belong to it");
    }
    *key = (struct jwt_key){
        .id = id != NULL ? xstrdup(id) : NULL, .algorithms = allowed, .public = public};
    return true;
}

static bool add_secret(struct jwt_keys *keys, struct slice secret, const char *id, unsigned only,
                       char *error, size_t error_size) {
    if (secret.length < SECRET_MIN || secret.length > SECRET_MAX)
        return keys_fail(error, error_size,
                         "a secret has less than 32 bytes, so it could be guessed, or more than "
                         "4096: make one with openssl rand -hex 32");
    if ((only & BIT(JWT_HS256)) == 0)
        return keys_fail(error, error_size, "a secret has another \"alg\" than HS256");
    struct jwt_key *key = keys_add(keys, error, error_size);
    if (key == NULL)
        return false;
    *key = (struct jwt_key){
        .id = id != NULL ? xstrdup(id) : NULL,
        .algorithms = BIT(JWT_HS256),
        .secret = xmalloc(secret.length),
        .secret_length = secret.length,
    };
    memcpy(key->secret, secret.base, secret.length);
    return true;
}

/* PEM: any number of public keys and certificates. */

static EVP_PKEY *key_of_pem(const char *name, const unsigned char *bytes, long length) {
    if (strcmp(name, PEM_STRING_PUBLIC) == 0)
        return d2i_PUBKEY(NULL, &bytes, length);
    if (strcmp(name, PEM_STRING_X509) != 0)
        return NULL;
    X509 *certificate = d2i_X509(NULL, &bytes, length);
    EVP_PKEY *key = certificate != NULL ? X509_get_pubkey(certificate) : NULL;
    X509_free(certificate);
    return key;
}

static bool read_pem(struct jwt_keys *keys, struct slice text, char *error, size_t error_size) {
    BIO *bio = BIO_new_mem_buf(text.base, (int)text.length);
    char *name, *header;
    unsigned char *bytes;
    long length;
    bool good = true;
    while (good && PEM_read_bio(bio, &name, &header, &bytes, &length) == 1) {
        EVP_PKEY *key = key_of_pem(name, bytes, length);
        if (key != NULL)
            good = add_public(keys, key, NULL, ~0u, error, error_size);
        else
            good = keys_fail(error, error_size,
                             strstr(name, "PRIVATE") != NULL
                                 ? "there is a private key: only the issuer of tokens may have it; "
                                   "write its public key, as openssl pkey -pubout does"
                                 : "there is something else than public keys (PUBLIC KEY) and "
                                   "certificates");
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_clear_free(bytes, (size_t)length);
    }
    BIO_free(bio);
    ERR_clear_error();
    return good && (keys->count > 0 ||
                    keys_fail(error, error_size, "there is no key in PEM, and it is no JWKS"));
}

/* JWKS (RFC 7517 §5). */

/* A member that is a number or bytes in base64url; SIZE_MAX: it is missing or malformed. */
static size_t jwk_bytes(const json_t *jwk, const char *member, unsigned char *out,
                        size_t capacity) {
    const char *text = json_string_value(json_object_get(jwk, member));
    return text != NULL ? base64url_decode(slice_from(text), out, capacity) : SIZE_MAX;
}

static EVP_PKEY *make_key(const char *kind, OSSL_PARAM_BLD *builder) {
    OSSL_PARAM *parameters = builder != NULL ? OSSL_PARAM_BLD_to_param(builder) : NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
    EVP_PKEY *key = NULL;
    if (parameters != NULL && context != NULL && EVP_PKEY_fromdata_init(context) == 1 &&
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    return key;
}

static EVP_PKEY *rsa_of_jwk(const json_t *jwk) {
    unsigned char n[NUMBER_MAX], e[16];
    size_t n_length = jwk_bytes(jwk, "n", n, sizeof n), e_length = jwk_bytes(jwk, "e", e, sizeof e);
    if (n_length == SIZE_MAX || e_length == SIZE_MAX || n_length == 0 || e_length == 0)
        return NULL;
    BIGNUM *modulus = BN_bin2bn(n, (int)n_length, NULL),
           *exponent = BN_bin2bn(e, (int)e_length, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    if (builder != NULL && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        key = make_key("RSA", builder);
    OSSL_PARAM_BLD_free(builder);
    BN_free(modulus);
    BN_free(exponent);
    return key;
}

static EVP_PKEY *ec_of_jwk(const json_t *jwk) {
    const char *curve = json_string_value(json_object_get(jwk, "crv"));
    bool is_384 = curve != NULL && strcmp(curve, "P-384") == 0;
    size_t half = is_384 ? 48 : 32;
    unsigned char point[1 + 2 * 48] = {POINT_CONVERSION_UNCOMPRESSED};
    if (curve == NULL || (!is_384 && strcmp(curve, "P-256") != 0) ||
        jwk_bytes(jwk, "x", point + 1, half) != half ||
        jwk_bytes(jwk, "y", point + 1 + half, half) != half)
        return NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    if (builder != NULL &&
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, curve, 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * half) ==
            1)
        key = make_key("EC", builder);
    OSSL_PARAM_BLD_free(builder);
    return key;
}

static EVP_PKEY *okp_of_jwk(const json_t *jwk) {
    const char *curve = json_string_value(json_object_get(jwk, "crv"));
    unsigned char x[32];
    if (curve == NULL || strcmp(curve, "Ed25519") != 0 || jwk_bytes(jwk, "x", x, sizeof x) != 32)
        return NULL;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x, sizeof x);
}

/* Is the key for something else than signatures (RFC 7517 §4.2)? */
static bool is_for_other_things(const json_t *jwk) {
    const char *use = json_string_value(json_object_get(jwk, "use"));
    return use != NULL && strcmp(use, "sig") != 0;
}

static bool add_jwk_secret(struct jwt_keys *keys, const json_t *jwk, const char *id, unsigned only,
                           char *error, size_t error_size) {
    unsigned char secret[SECRET_MAX];
    size_t length = jwk_bytes(jwk, "k", secret, sizeof secret);
    bool good =
        length != SIZE_MAX
            ? add_secret(keys, slice_make((char *)secret, length), id, only, error, error_size)
            : keys_fail(error, error_size, "the \"k\" of a secret is no base64url");
    OPENSSL_cleanse(secret, sizeof secret);
    return good;
}

/* A key of a kind or with an algorithm that is not known is left out (RFC 7517 §5). */
static bool add_jwk(struct jwt_keys *keys, const json_t *jwk, char *error, size_t error_size) {
    const char *kind = json_string_value(json_object_get(jwk, "kty"));
    const char *id = json_string_value(json_object_get(jwk, "kid"));
    const char *named = json_string_value(json_object_get(jwk, "alg"));
    enum jwt_algorithm algorithm = jwt_algorithm_find(slice_from(named));
    unsigned only = named == NULL ? ~0u : algorithm < JWT_ALGORITHMS ? BIT(algorithm) : 0;
    EVP_PKEY *public = NULL;
    if (kind == NULL)
        return keys_fail(error, error_size, "a key has no \"kty\"");
    if (id != NULL && strlen(id) > ID_MAX)
        return keys_fail(error, error_size, "a \"kid\" has more than 255 bytes");
    if (is_for_other_things(jwk) || only == 0)
        return true;
    if (strcmp(kind, "oct") == 0)
        return add_jwk_secret(keys, jwk, id, only, error, error_size);
    if (strcmp(kind, "RSA") == 0)
    public = rsa_of_jwk(jwk);
    else if (strcmp(kind, "EC") == 0) public = ec_of_jwk(jwk);
    else if (strcmp(kind, "OKP") == 0) public = okp_of_jwk(jwk);
    else return true;
    if (public == NULL)
        return keys_fail(error, error_size,
                         "a key is damaged, or of a curve other than P-256, P-384 and Ed25519");
    return add_public(keys, public, id, only, error, error_size);
}

static bool read_jwks(struct jwt_keys *keys, struct slice text, char *error, size_t error_size) {
    json_error_t why;
    json_t *root = json_loadb(text.base, text.length, JSON_REJECT_DUPLICATES, &why);
    const json_t *list = json_object_get(root, "keys"), *jwk;
    bool good = true;
    size_t i;
    if (root == NULL)
        snprintf(error, error_size, "line %d: the JSON is malformed or not complete", why.line);
    else if (list == NULL)
        good = add_jwk(keys, root, error, error_size);
    else
        json_array_foreach(list, i, jwk) good = good && add_jwk(keys, jwk, error, error_size);
    good = good && root != NULL;
    json_decref(root);
    return good && (keys->count > 0 ||
                    keys_fail(error, error_size, "there is no key that verifies signatures"));
}

static bool path_ends_with(const char *path, const char *end) {
    return slice_ends_with_nocase(slice_from(path), slice_from(end));
}

struct jwt_keys *jwt_keys_parse(struct slice text, const char *path, char *error,
                                size_t error_size) {
    struct jwt_keys *keys;
    struct slice trimmed = text;
    bool good;
    ALLOC_OBJ(keys, JWT_KEYS_MAGIC);
    while (trimmed.length > 0 && strchr(" \t\r\n", trimmed.base[trimmed.length - 1]) != NULL)
        trimmed.length--;
    while (trimmed.length > 0 && strchr(" \t\r\n", *trimmed.base) != NULL)
        trimmed = slice_make(trimmed.base + 1, trimmed.length - 1);
    if (path_ends_with(path, ".secret"))
        good = add_secret(keys, trimmed, NULL, ~0u, error, error_size);
    else if (text.length > 1024 * 1024)
        good = keys_fail(error, error_size, "it is larger than 1 MB");
    else if (trimmed.length > 0 && *trimmed.base == '{')
        good = read_jwks(keys, trimmed, error, error_size);
    else
        good = read_pem(keys, text, error, error_size);
    if (!good)
        jwt_keys_free(&keys);
    return keys;
}

void jwt_keys_free(struct jwt_keys **keysp) {
    struct jwt_keys *keys = *keysp;
    *keysp = NULL;
    if (keys == NULL)
        return;
    CHECK_OBJ(keys, JWT_KEYS_MAGIC);
    for (size_t i = 0; i < keys->count; i++) {
        struct jwt_key *key = &keys->keys[i];
        free(key->id);
        EVP_PKEY_free(key->public);
        if (key->secret != NULL)
            OPENSSL_cleanse(key->secret, key->secret_length);
        free(key->secret);
    }
    FREE_OBJ(keys);
}

bool jwt_keys_have_secret(const struct jwt_keys *keys) {
    CHECK_OBJ(keys, JWT_KEYS_MAGIC);
    for (size_t i = 0; i < keys->count; i++)
        if (keys->keys[i].secret != NULL)
            return true;
    return false;
}

const struct jwt_key *jwt_keys_next(const struct jwt_keys *keys, const struct jwt_key *after,
                                    enum jwt_algorithm algorithm, struct slice id) {
    CHECK_OBJ(keys, JWT_KEYS_MAGIC);
    for (size_t i = after != NULL ? (size_t)(after - keys->keys) + 1 : 0; i < keys->count; i++) {
        const struct jwt_key *key = &keys->keys[i];
        if ((key->algorithms & BIT(algorithm)) != 0 &&
            (id.length == 0 || key->id == NULL || slice_equal(id, slice_from(key->id))))
            return key;
    }
    return NULL;
}

/* Verifying. */

/* A token has the two numbers of ECDSA one after the other (RFC 7518 §3.4), OpenSSL wants DER. The
 * caller frees the result; NULL: the signature is malformed. */
static unsigned char *der_of(struct slice signature, size_t half, int *length) {
    unsigned char *der = NULL;
    if (signature.length != 2 * half)
        return NULL;
    const unsigned char *bytes = (const unsigned char *)signature.base;
    ECDSA_SIG *numbers = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, (int)half, NULL), *s = BN_bin2bn(bytes + half, (int)half, NULL);
    if (numbers == NULL || r == NULL || s == NULL || ECDSA_SIG_set0(numbers, r, s) != 1) {
        BN_free(r);
        BN_free(s);
    } else {
        *length = i2d_ECDSA_SIG(numbers, &der);
    }
    ECDSA_SIG_free(numbers);
    return der;
}

static bool secret_verifies(const struct jwt_key *key, struct slice text, struct slice signature) {
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    return HMAC(EVP_sha256(), key->secret, (int)key->secret_length,
                (const unsigned char *)text.base, text.length, mac, &length) != NULL &&
           signature.length == length && CRYPTO_memcmp(mac, signature.base, length) == 0;
}

static bool set_padding(EVP_PKEY_CTX *context, enum jwt_algorithm algorithm) {
    return algorithm != JWT_PS256 ||
           (EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 &&
            EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1);
}

static bool public_verifies(const struct jwt_key *key, enum jwt_algorithm algorithm,
                            struct slice text, struct slice signature) {
    const EVP_MD *digest =
        algorithms[algorithm].digest != NULL ? algorithms[algorithm].digest() : NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *parameters;
    bool good = context != NULL &&
                EVP_DigestVerifyInit(context, &parameters, digest, NULL, key->public) == 1 &&
                set_padding(parameters, algorithm) &&
                EVP_DigestVerify(context, (const unsigned char *)signature.base, signature.length,
                                 (const unsigned char *)text.base, text.length) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return good;
}

bool jwt_key_verifies(const struct jwt_key *key, enum jwt_algorithm algorithm, struct slice text,
                      struct slice signature) {
    if (algorithm >= JWT_ALGORITHMS || (key->algorithms & BIT(algorithm)) == 0)
        return false;
    if (key->secret != NULL)
        return secret_verifies(key, text, signature);
    size_t half = algorithms[algorithm].half;
    if (half == 0)
        return public_verifies(key, algorithm, text, signature);
    int length = 0;
    unsigned char *der = der_of(signature, half, &length);
    bool good =
        der != NULL && length > 0 &&
        public_verifies(key, algorithm, text, slice_make((const char *)der, (size_t)length));
    OPENSSL_free(der);
    return good;
}
