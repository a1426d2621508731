/*
 * A file of users and the hashes of their passwords, as Apache's htpasswd writes it, with the groups
 * of an AuthGroupFile.
 *
 *     users:   alice:$2y$05$...          groups:   staff: alice bob
 *              bob:$apr1$...                       admins: alice
 *
 *     struct htpasswd *file = htpasswd_parse(users, groups, error, sizeof error);
 *     const struct htpasswd_user *user = htpasswd_find(file, SLICE("alice"));
 *     const char *hash = user != NULL ? user->hash : htpasswd_decoy(file, SLICE("alice"));
 *
 * Both texts must end with a line break, so that a file that is half written is noticed. Lines that
 * are empty or begin with # say nothing. What stands behind a second colon says nothing either.
 *
 * Threads: read-only after htpasswd_parse. Errors: "line 7: ..." with what to do, and without the
 * hash.
 */
#ifndef RETORT_IDENTITY_HTPASSWD_H
#define RETORT_IDENTITY_HTPASSWD_H

#include "base/slice.h"

struct htpasswd;

struct htpasswd_user {
    struct slice name;
    const char *hash;
    struct slice *groups;
    size_t group_count;
};

/* `groups` may be empty. NULL: an error. */
struct htpasswd *htpasswd_parse(struct slice users, struct slice groups, char *error,
                                size_t error_size);
void htpasswd_free(struct htpasswd **filep);
size_t htpasswd_count(const struct htpasswd *file);
/* NULL: there is no such user. */
const struct htpasswd_user *htpasswd_find(const struct htpasswd *file, struct slice name);
/* The hash of somebody else, always the same for a name: a password that is compared with it takes
 * as long as if the user were there. NULL: there are no users at all. */
const char *htpasswd_decoy(const struct htpasswd *file, struct slice name);

#endif
