/*
 * Tokens and files of keys: the first byte says which of both the rest is.
 *
 * Nothing that is made without the keys is accepted. A file is refused with a message, or its keys
 * have algorithms of one kind each.
 */
#include "base/assert.h"
#include "identity/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char jwks[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
                           "\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                           "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}";

static void try_token(struct slice token) {
    static const struct jwt_rules rules = {.user_claim = "sub"};
    char error[400];
    struct jwt_keys *keys = jwt_keys_parse(slice_from(jwks), "a.jwks", error, sizeof error);
    struct jwt_user user;
    const char *reason;
    ASSERT(keys != NULL);
    ASSERT(jwt_verify(keys, token, &rules, 0, &user, &reason) == JWT_UNTRUSTED && reason != NULL);
    jwt_user_release(&user);
    jwt_keys_free(&keys);
}

static void try_keys(struct slice text, const char *path) {
    char error[400] = "";
    struct jwt_keys *keys = jwt_keys_parse(text, path, error, sizeof error);
    ASSERT(keys != NULL || error[0] != '\0');
    const struct jwt_key *key = NULL;
    while (keys != NULL && (key = jwt_keys_next(keys, key, JWT_HS256, SLICE(""))) != NULL)
        ASSERT(jwt_keys_have_secret(keys) &&
               !jwt_key_verifies(key, JWT_RS256, SLICE("a"), SLICE("b")));
    jwt_keys_free(&keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const paths[] = {"a.jwks", "a.secret"};
    if (size == 0)
        return 0;
    char *copy = slice_dup(slice_make((const char *)data + 1, size - 1));
    struct slice rest = slice_make(copy, size - 1);
    if (data[0] % 3 == 0)
        try_token(rest);
    else
        try_keys(rest, paths[data[0] % 3 - 1]);
    free(copy);
    return 0;
}
