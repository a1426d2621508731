#include "identity/jwt.h"

#include "base/base64.h"

#include <jansson.h>
#include <stdlib.h>

/* The three parts, and the text that is signed: the first two with their dot. */
struct jwt_parts {
    struct slice header, claims, signature, text;
};

static bool split(struct slice token, struct jwt_parts *parts) {
    const char *end = token.base + token.length;
    const char *first = memchr(token.base, '.', token.length);
    const char *second = first != NULL ? memchr(first + 1, '.', (size_t)(end - first - 1)) : NULL;
    if (second == NULL || memchr(second + 1, '.', (size_t)(end - second - 1)) != NULL)
        return false;
    parts->header = slice_make(token.base, (size_t)(first - token.base));
    parts->claims = slice_make(first + 1, (size_t)(second - first - 1));
    parts->signature = slice_make(second + 1, (size_t)(end - second - 1));
    parts->text = slice_make(token.base, (size_t)(second - token.base));
    return true;
}

/* The JSON object of a part; NULL: it is none. */
static json_t *read_object(struct slice part) {
    unsigned char *bytes = malloc(part.length + 1);
    size_t length = bytes != NULL ? base64url_decode(part, bytes, part.length) : SIZE_MAX;
    json_t *object = NULL;
    if (length != SIZE_MAX)
        object = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, NULL);
    free(bytes);
    if (object != NULL && !json_is_object(object)) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

static struct slice string_of(const json_t *value) {
    return json_is_string(value) ? slice_make(json_string_value(value), json_string_length(value))
                                 : slice_make(NULL, 0);
}

static const char *verify_by_some_key(const struct jwt_keys *keys, enum jwt_algorithm algorithm,
                                      struct slice id, struct slice text, struct slice signature) {
    const struct jwt_key *key = NULL;
    for (unsigned tries = 0; tries < JWT_TRIES; tries++) {
        key = jwt_keys_next(keys, key, algorithm, id);
        if (key == NULL)
            return "no key for this token verifies its signature";
        if (jwt_key_verifies(key, algorithm, text, signature))
            return NULL;
    }
    return "too many keys could have signed this token";
}

static const char *verify_signature(const struct jwt_keys *keys, const struct jwt_parts *parts,
                                    const json_t *header) {
    char signature[1024];
    enum jwt_algorithm algorithm = jwt_algorithm_find(string_of(json_object_get(header, "alg")));
    const json_t *id = json_object_get(header, "kid");
    if (json_object_get(header, "crit") != NULL)
        return "the token has critical extensions, which nobody here understands";
    if (algorithm == JWT_ALGORITHMS || (id != NULL && !json_is_string(id)))
        return "the token's algorithm is not allowed";
    size_t length = base64url_decode(parts->signature, signature, sizeof signature);
    if (length == SIZE_MAX || length == 0)
        return "the token has no signature";
    const char *reason = verify_by_some_key(keys, algorithm, string_of(id), parts->text,
                                            slice_make(signature, length));
    explicit_bzero(signature, sizeof signature); /* without it, the rest lets nobody in */
    return reason;
}

/* A NumericDate (RFC 7519 §2). False: it is there and is none. */
static bool jwt_read_time(const json_t *claims, const char *name, bool *is_there, int64_t *time) {
    const json_t *value = json_object_get(claims, name);
    *is_there = value != NULL;
    if (value == NULL)
        return true;
    if (!json_is_number(value))
        return false;
    double seconds = json_number_value(value);
    if (!(seconds >= 0 && seconds < 1e12))
        return false;
    *time = (int64_t)seconds;
    return true;
}

static const char *check_times(const json_t *claims, int64_t leeway, int64_t now, int64_t *until) {
    bool expires, begins, was_issued;
    int64_t end = 0, begin = 0, issued = 0;
    if (!jwt_read_time(claims, "exp", &expires, &end) ||
        !jwt_read_time(claims, "nbf", &begins, &begin) ||
        !jwt_read_time(claims, "iat", &was_issued, &issued))
        return "a time in the token is malformed";
    if (!expires)
        return "the token never expires (exp)";
    if (now >= end + leeway)
        return "the token has expired";
    if ((begins && now + leeway < begin) || (was_issued && now + leeway < issued))
        return "the token is not valid yet";
    *until = end + leeway;
    return NULL;
}

static bool jwt_is_one_of(struct slice text, const char *const *list) {
    for (; *list != NULL; list++)
        if (text.base != NULL && slice_equal(text, slice_from(*list)))
            return true;
    return false;
}

static bool is_for_us(const json_t *claims, const char *const *audiences) {
    const json_t *audience = json_object_get(claims, "aud"), *one;
    size_t i;
    if (audiences == NULL)
        return true;
    json_array_foreach(audience, i, one) if (jwt_is_one_of(string_of(one), audiences)) return true;
    return jwt_is_one_of(string_of(audience), audiences);
}

/* A list of names, or names in one string (as in `scope`, RFC 8693 §4.2). */
static bool jwt_read_groups(const json_t *claim, struct jwt_user *user) {
    const json_t *one;
    size_t i;
    struct slice rest = string_of(claim);
    if (claim != NULL && !json_is_array(claim) && !json_is_string(claim))
        return false;
    json_array_foreach(claim, i, one) {
        struct slice group = string_of(one);
        if (user->group_count == IDENTITY_GROUPS_MAX || !identity_name_is_good(group))
            return false;
        user->groups[user->group_count++] = group;
    }
    while ((rest = slice_trim(rest)).length > 0) {
        size_t length = 0;
        while (length < rest.length && rest.base[length] != ' ')
            length++;
        struct slice group = slice_make(rest.base, length);
        if (user->group_count == IDENTITY_GROUPS_MAX || !identity_name_is_good(group))
            return false;
        user->groups[user->group_count++] = group;
        rest = slice_make(rest.base + length, rest.length - length);
    }
    return true;
}

static const char *read_user(const struct jwt_rules *rules, struct jwt_user *user) {
    user->name = string_of(json_object_get(user->claims, rules->user_claim));
    if (!identity_name_is_good(user->name))
        return "the token does not say who the user is";
    if (rules->group_claim != NULL &&
        !jwt_read_groups(json_object_get(user->claims, rules->group_claim), user))
        return "the groups in the token are malformed, or too many";
    return NULL;
}

static const char *check_claims(const struct jwt_rules *rules, int64_t now, struct jwt_user *user) {
    const char *reason = check_times(user->claims, rules->leeway, now, &user->until);
    if (reason != NULL)
        return reason;
    if (rules->issuer != NULL &&
        !slice_equal(string_of(json_object_get(user->claims, "iss")), slice_from(rules->issuer)))
        return "the token is of another issuer";
    if (!is_for_us(user->claims, rules->audiences))
        return "the token is for another audience";
    return read_user(rules, user);
}

enum jwt_status jwt_verify(const struct jwt_keys *keys, struct slice token,
                           const struct jwt_rules *rules, int64_t now, struct jwt_user *user,
                           const char **reason) {
    struct jwt_parts parts;
    user->claims = NULL;
    user->group_count = 0;
    user->until = 0;
    *reason = "the token is malformed";
    if (token.length > JWT_MAX || !split(token, &parts))
        return JWT_UNTRUSTED;
    json_t *header = read_object(parts.header);
    if (header == NULL)
        return JWT_UNTRUSTED;
    *reason = verify_signature(keys, &parts, header);
    json_decref(header);
    if (*reason != NULL)
        return JWT_UNTRUSTED;
    user->claims = read_object(parts.claims);
    *reason = user->claims == NULL ? "the token is malformed" : check_claims(rules, now, user);
    return *reason == NULL ? JWT_GOOD : JWT_EXPIRED;
}

void jwt_user_release(struct jwt_user *user) {
    json_decref(user->claims);
    user->claims = NULL;
}
