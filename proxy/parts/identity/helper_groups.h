/*
 * The groups of a user who has proved himself, asked of a helper: ext_unix_group_acl,
 * ext_ldap_group_acl and others, which say for one user and one group whether the user is in it.
 *
 *     if (helper_groups_wanted(check))
 *         helper_groups_start(check, name, groups, count, until);
 *                                                  ends in credentials_check_prove_whole, or _fail
 *     helper_groups_end(check);                    in any state: when the check ends
 *
 * It asks for each group that a url_class names (settings.asked_groups), one after another,
 * with a deadline for all of them. A group that the method itself has proved is not asked for. If
 * one question can't be answered, nothing is proved: a user who is in a group that is denied would
 * else pass.
 *
 * The result is remembered with the user: by the check, or here for methods whose proofs are new
 * each time (tickets, certificates).
 *
 * Threads: the worker's. Memory: the check's arena.
 */
#ifndef RETORT_IDENTITY_HELPER_GROUPS_H
#define RETORT_IDENTITY_HELPER_GROUPS_H

#include "identity/credentials_check.h"

/* For authenticator.c: what is remembered depends on whom and what we ask. */
void helper_groups_digest(struct authenticator *authenticator);
bool helper_groups_wanted(const struct credentials_check *check);
/* Copies the name and the groups. */
void helper_groups_start(struct credentials_check *check, struct slice name,
                         const struct slice *groups, size_t group_count, int64_t until);
void helper_groups_end(struct credentials_check *check);

#endif
