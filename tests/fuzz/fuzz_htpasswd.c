/*
 * Files of users and groups: the users, a byte 0x1e, and the groups.
 *
 * A file is refused with a message, or each user is found by the name, once, with a hash that is
 * accepted alone and with groups that are names.
 */
#include "base/assert.h"
#include "client/identity.h"
#include "identity/htpasswd.h"
#include "identity/password_hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Looks for the name at the front of each line. */
static void check_users(const struct htpasswd *file, struct slice users) {
    char reason[200];
    while (users.length > 0) {
        const char *end = memchr(users.base, '\n', users.length);
        const char *colon = memchr(users.base, ':', (size_t)(end - users.base));
        if (colon != NULL && users.base[0] != '#') {
            struct slice name = slice_make(users.base, (size_t)(colon - users.base));
            const struct htpasswd_user *user = htpasswd_find(file, name);
            ASSERT(user != NULL && identity_name_is_good(name));
            ASSERT(password_hash_check(user->hash, reason, sizeof reason));
            for (size_t i = 0; i < user->group_count; i++)
                ASSERT(identity_name_is_good(user->groups[i]));
        }
        users = slice_make(end + 1, users.length - (size_t)(end + 1 - users.base));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[400] = "";
    char *copy = slice_dup(slice_make((const char *)data, size));
    const char *end = memchr(copy, 0x1e, size);
    size_t length = end != NULL ? (size_t)(end - copy) : size;
    struct slice users = slice_make(copy, length), groups = slice_make("", 0);
    if (end != NULL)
        groups = slice_make(end + 1, size - length - 1);
    struct htpasswd *file = htpasswd_parse(users, groups, error, sizeof error);
    ASSERT(file != NULL || error[0] != '\0');
    if (file != NULL && (users.length < 3 || memcmp(users.base, "\xef\xbb\xbf", 3) != 0))
        check_users(file, users);
    htpasswd_free(&file);
    free(copy);
    return 0;
}
