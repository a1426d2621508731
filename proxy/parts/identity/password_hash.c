#include "identity/password_hash.h"

#include "http/credentials.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MD5_SIZE = 16,
    SHA_SIZE = 20,
    APR1_ROUNDS = 1000,
    APR1_SALT = 8,
    APR1_TEXT = 22,
    PASSWORD_MAX = 512,    /* what crypt(3) takes */
    ROUNDS_MAX = 10000000, /* of SHA-crypt: some ten seconds */
    BCRYPT_COST_MAX = 16,
};

static const char apr1_prefix[] = "$apr1$", sha_prefix[] = "{SHA}";

static bool begins(const char *hash, const char *prefix) {
    return strncmp(hash, prefix, strlen(prefix)) == 0;
}

/* apr1: MD5 in a thousand rounds, as Apache has it (apr_md5_encode) and `openssl passwd -apr1`. */

struct apr1_sum {
    EVP_MD_CTX *context;
    bool good;
};

static void apr1_begin(struct apr1_sum *sum) {
    sum->good &= EVP_DigestInit_ex(sum->context, EVP_md5(), NULL) == 1;
}

static void apr1_add(struct apr1_sum *sum, const void *bytes, size_t length) {
    sum->good &= EVP_DigestUpdate(sum->context, bytes, length) == 1;
}

static void apr1_end(struct apr1_sum *sum, unsigned char digest[MD5_SIZE]) {
    sum->good &= EVP_DigestFinal_ex(sum->context, digest, NULL) == 1;
}

static void apr1_first(struct apr1_sum *sum, struct slice password, struct slice salt,
                       unsigned char digest[MD5_SIZE]) {
    apr1_begin(sum);
    apr1_add(sum, password.base, password.length);
    apr1_add(sum, salt.base, salt.length);
    apr1_add(sum, password.base, password.length);
    apr1_end(sum, digest);
    apr1_begin(sum);
    apr1_add(sum, password.base, password.length);
    apr1_add(sum, apr1_prefix, sizeof apr1_prefix - 1);
    apr1_add(sum, salt.base, salt.length);
    for (size_t rest = password.length; rest > 0; rest -= rest < MD5_SIZE ? rest : MD5_SIZE)
        apr1_add(sum, digest, rest < MD5_SIZE ? rest : MD5_SIZE);
    for (size_t bits = password.length; bits > 0; bits >>= 1)
        apr1_add(sum, (bits & 1) != 0 ? "" : password.base, 1);
    apr1_end(sum, digest);
}

static void apr1_round(struct apr1_sum *sum, unsigned round, struct slice password,
                       struct slice salt, unsigned char digest[MD5_SIZE]) {
    bool odd = (round & 1) != 0;
    apr1_begin(sum);
    apr1_add(sum, odd ? password.base : (const char *)digest, odd ? password.length : MD5_SIZE);
    if (round % 3 != 0)
        apr1_add(sum, salt.base, salt.length);
    if (round % 7 != 0)
        apr1_add(sum, password.base, password.length);
    apr1_add(sum, odd ? (const char *)digest : password.base, odd ? MD5_SIZE : password.length);
    apr1_end(sum, digest);
}

/* Six bits a letter, the lowest first. */
static char *apr1_letters(char *at, uint32_t bits, unsigned letters) {
    static const char digits[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz";
    for (; letters > 0; letters--, bits >>= 6)
        *at++ = digits[bits & 63];
    return at;
}

static void apr1_text(const unsigned char digest[MD5_SIZE], char text[APR1_TEXT]) {
    char *at = text;
    for (unsigned i = 0; i < 5; i++) {
        unsigned last = i == 4 ? 5 : i + 12;
        at = apr1_letters(
            at, (uint32_t)digest[i] << 16 | (uint32_t)digest[i + 6] << 8 | digest[last], 4);
    }
    apr1_letters(at, digest[11], 2);
}

static bool apr1_matches(const char *hash, struct slice password) {
    unsigned char digest[MD5_SIZE];
    char text[APR1_TEXT];
    const char *salt = hash + sizeof apr1_prefix - 1, *end = strchr(salt, '$');
    struct slice salted = slice_make(salt, (size_t)(end - salt));
    struct apr1_sum sum = {EVP_MD_CTX_new(), true};
    sum.good = sum.context != NULL;
    if (sum.good)
        apr1_first(&sum, password, salted, digest);
    for (unsigned round = 0; sum.good && round < APR1_ROUNDS; round++)
        apr1_round(&sum, round, password, salted, digest);
    EVP_MD_CTX_free(sum.context);
    if (sum.good)
        apr1_text(digest, text);
    bool same = sum.good && CRYPTO_memcmp(text, end + 1, APR1_TEXT) == 0;
    OPENSSL_cleanse(digest, sizeof digest);
    OPENSSL_cleanse(text, sizeof text);
    return same;
}

static bool apr1_is_whole(const char *hash) {
    const char *salt = hash + sizeof apr1_prefix - 1, *end = strchr(salt, '$');
    return end != NULL && end > salt && end - salt <= APR1_SALT && strlen(end + 1) == APR1_TEXT;
}

/* {SHA}: SHA-1 in base64, without salt. */

static bool sha_matches(const char *hash, struct slice password) {
    unsigned char digest[SHA_SIZE], text[4 * ((SHA_SIZE + 2) / 3) + 1];
    if (EVP_Digest(password.base, password.length, digest, NULL, EVP_sha1(), NULL) != 1)
        return false;
    EVP_EncodeBlock(text, digest, sizeof digest);
    bool same = CRYPTO_memcmp(text, hash + sizeof sha_prefix - 1, sizeof text - 1) == 0;
    OPENSSL_cleanse(digest, sizeof digest);
    OPENSSL_cleanse(text, sizeof text);
    return same;
}

/* crypt(3). */

static bool crypt_matches(const char *hash, struct slice password) {
    char text[PASSWORD_MAX];
    struct crypt_data *data = NULL;
    bool same = false;
    if (password.length >= sizeof text || (data = calloc(1, sizeof *data)) == NULL)
        return false;
    slice_put(text, password)[0] = '\0';
    const char *made = crypt_r(text, hash, data);
    if (made != NULL && made[0] != '*' && strlen(made) == strlen(hash))
        same = CRYPTO_memcmp(made, hash, strlen(hash)) == 0;
    explicit_bzero(text, sizeof text);
    explicit_bzero(data, sizeof *data);
    free(data);
    return same;
}

bool password_hash_matches(const char *hash, struct slice password) {
    if (begins(hash, apr1_prefix))
        return apr1_matches(hash, password);
    if (begins(hash, sha_prefix))
        return sha_matches(hash, password);
    return crypt_matches(hash, password);
}

/* The cost must not stop a thread for minutes. */
static bool cost_is_bearable(const char *hash, char *reason, size_t reason_size) {
    if (hash[1] == '2' && atoi(hash + 4) > BCRYPT_COST_MAX)
        snprintf(reason, reason_size, "its bcrypt cost is above %d: make it anew with less",
                 BCRYPT_COST_MAX);
    else if ((hash[1] == '5' || hash[1] == '6') && begins(hash + 3, "rounds=") &&
             strtoul(hash + 10, NULL, 10) > ROUNDS_MAX)
        snprintf(reason, reason_size, "it has more than %d rounds: make it anew with less",
                 ROUNDS_MAX);
    else
        return true;
    return false;
}

/* A whole hash is what crypt(3) would write: its parts have fixed lengths. */
static bool crypt_is_whole(const char *hash) {
    const char *last = strrchr(hash, '$');
    size_t length = strlen(last + 1);
    switch (hash[1]) {
    case '2': return length == 53 && strlen(hash) == 60;
    case '5':
    case 'y':
    case 'g':
    case '7': return length == 43;
    case '6': return length == 86;
    default: return false;
    }
}

bool password_hash_check(const char *hash, char *reason, size_t reason_size) {
    static const char *const known[] = {"$2a$", "$2b$", "$2y$", "$y$", "$gy$", "$7$", "$5$", "$6$"};
    size_t kind = 0;
    if (begins(hash, apr1_prefix) ? apr1_is_whole(hash)
                                  : begins(hash, sha_prefix) && strlen(hash) == 33)
        return true;
    while (kind < sizeof known / sizeof known[0] && !begins(hash, known[kind]))
        kind++;
    if (strlen(hash) > PASSWORD_HASH_MAX ||
        ((kind < sizeof known / sizeof known[0] || begins(hash, apr1_prefix) ||
          begins(hash, sha_prefix)) &&
         (begins(hash, apr1_prefix) || begins(hash, sha_prefix) || !crypt_is_whole(hash) ||
          crypt_checksalt(hash) == CRYPT_SALT_INVALID)))
        snprintf(reason, reason_size, "its hash is cut off or damaged");
    else if (kind == sizeof known / sizeof known[0])
        snprintf(reason, reason_size,
                 "its password is in plain text, or its hash is of a weak or unknown kind, such as "
                 "DES: make it anew with htpasswd -B");
    else
        return cost_is_bearable(hash, reason, reason_size);
    return false;
}
