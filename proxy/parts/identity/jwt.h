/*
 * Signed tokens: JWT (RFC 7519) in the compact form of JWS (RFC 7515), verified with the keys of a
 * file.
 *
 *     struct jwt_rules rules = {.issuer = "https://login.example.com/", .user_claim = "sub"};
 *     struct jwt_user user;
 *     switch (jwt_verify(keys, token, &rules, now, &user, &reason)) {
 *     case JWT_GOOD:      user.name, user.groups, until user.until
 *     case JWT_EXPIRED:   signed by a key of ours, but not valid now, or not for us
 *     case JWT_UNTRUSTED: anybody may have written it
 *     }
 *     jwt_user_release(&user);                        after any of them
 *
 * Nothing of a token is believed before a key of ours has verified it but `alg` and `kid`, which
 * choose among the keys that allow this algorithm (jwt_keys.h). Tokens without `exp`, with critical
 * extensions (`crit`), with a member that occurs twice, or that are not base64url to the last bit
 * are refused.
 *
 * Threads: pure. Units: seconds since 1970. Memory: jwt_user_release frees it.
 */
#ifndef RETORT_IDENTITY_JWT_H
#define RETORT_IDENTITY_JWT_H

#include "client/identity.h"
#include "identity/jwt_keys.h"

struct json_t;

/* Bytes of a token, and signatures that are tried for one. */
enum { JWT_MAX = 16384, JWT_TRIES = 8 };

enum jwt_status { JWT_GOOD, JWT_EXPIRED, JWT_UNTRUSTED };

struct jwt_rules {
    const char *issuer;                   /* NULL: any */
    const char *const *audiences;         /* ends with NULL; NULL: any */
    const char *user_claim, *group_claim; /* group_claim NULL: none */
    int64_t leeway;
};

struct jwt_user {
    struct slice name;
    struct slice groups[IDENTITY_GROUPS_MAX];
    size_t group_count;
    int64_t until;
    struct json_t *claims; /* what the slices point to */
};

/* `reason` gets a static sentence unless the token is good. */
enum jwt_status jwt_verify(const struct jwt_keys *keys, struct slice token,
                           const struct jwt_rules *rules, int64_t now, struct jwt_user *user,
                           const char **reason);
void jwt_user_release(struct jwt_user *user);

#endif
