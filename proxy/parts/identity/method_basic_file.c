/* Basic against an htpasswd file: passwords are compared in a thread. */
#include "base/failure.h"
#include "identity/authorization.h"
#include "identity/htpasswd.h"
#include "identity/identity_method.h"
#include "identity/password_hash.h"
#include "secrets/secret_file.h"

#include "base/log.h"

#include <stdio.h>
#include <sys/stat.h>

struct compare {
    struct check_job job;
    struct credentials_check *check;     /* NULL: nobody waits any more; the worker's */
    struct authenticator *authenticator; /* referenced: its file has the hash */
    const struct htpasswd_user *user;    /* NULL: there is no such user */
    const char *hash;
    bool matches;
    size_t length;
    char password[AUTHORIZATION_BASIC];
};

static void compare_run(struct check_job *job) {
    struct compare *compare = CONTAINER_OF(job, struct compare, job);
    compare->matches =
        password_hash_matches(compare->hash, slice_make(compare->password, compare->length));
    explicit_bzero(compare->password, sizeof compare->password);
}

static void compare_free(struct compare *compare) {
    explicit_bzero(compare->password, sizeof compare->password);
    authenticator_release(&compare->authenticator);
    free(compare);
}

static void compare_done(struct check_job *job) {
    struct compare *compare = CONTAINER_OF(job, struct compare, job);
    struct credentials_check *check = compare->check;
    const struct htpasswd_user *user = compare->user;
    if (check == NULL) {
        compare_free(compare);
        return;
    }
    check->method_state = NULL;
    if (!job->ran)
        credentials_check_fail(check, "the proxy is stopping");
    else if (user != NULL && compare->matches)
        credentials_check_prove(check, user->name, user->groups, user->group_count, 0);
    else
        credentials_check_refuse(check, "the name or the password is wrong");
    compare_free(compare);
}

/* A name that does not exist costs the same: the password is compared with somebody else's. */
static void basic_file_start(struct credentials_check *check) {
    const struct htpasswd *file = check->authenticator->state;
    const struct htpasswd_user *user = htpasswd_find(file, check->user);
    const char *hash = user != NULL ? user->hash : htpasswd_decoy(file, check->user);
    if (hash == NULL) {
        credentials_check_refuse(check, "there are no users");
        return;
    }
    struct compare *compare = xcalloc(1, sizeof *compare);
    *compare = (struct compare){
        .job = {.run = compare_run, .done = compare_done},
        .check = check,
        .authenticator = authenticator_reference(check->authenticator),
        .user = user,
        .hash = hash,
        .length = check->password.length,
    };
    slice_put(compare->password, check->password);
    check->method_state = compare;
    if (check_threads_post(check->authentication->threads, &compare->job, check->net->mailbox,
                           check->client_name))
        return;
    check->method_state = NULL;
    compare_free(compare);
    check->net->counters.identity_overloads++;
    credentials_check_fail(check, "too many passwords are being checked");
}

static void basic_file_cancel(struct credentials_check *check) {
    struct compare *compare = check->method_state;
    if (compare != NULL)
        compare->check = NULL;
    check->method_state = NULL;
}

static bool basic_file_parse(struct authenticator *authenticator, const struct secret_file *users,
                             const struct secret_file *groups, char *error, size_t error_size) {
    const char *path = authenticator->settings.file;
    char reason[400];
    authenticator->state = htpasswd_parse(users->text, groups->text, reason, sizeof reason);
    if (authenticator->state == NULL)
        return failure(error, error_size, "%s: %s", path, reason);
    if ((users->mode & S_IROTH) != 0)
        log_warn("authenticator \"%s\": every user of this machine can read the hashes in %s: "
                 "change its group to retort's (chgrp) and run chmod 640 %s",
                 authenticator->settings.name, path, path);
    authenticator_digest(authenticator, users->text);
    authenticator_digest(authenticator, groups->text);
    return true;
}

static bool basic_file_configure(struct authenticator *authenticator, char *error,
                                 size_t error_size) {
    struct secret_file users, groups = {.text = {"", 0}};
    const char *group_file = authenticator->settings.group_file;
    if (!secret_file_read(&users, authenticator->settings.file, error, error_size))
        return false;
    bool good = (group_file == NULL || secret_file_read(&groups, group_file, error, error_size)) &&
                basic_file_parse(authenticator, &users, &groups, error, error_size);
    secret_file_release(&users);
    if (group_file != NULL)
        secret_file_release(&groups);
    return good;
}

static void basic_file_release(struct authenticator *authenticator) {
    struct htpasswd *file = authenticator->state;
    htpasswd_free(&file);
    authenticator->state = NULL;
}

static struct slice basic_file_challenge(const struct authenticator *authenticator,
                                         struct slice realm, bool refused, struct arena *arena) {
    return challenge_basic(realm, arena);
}

const struct identity_method identity_basic_file = {
    .name = "basic",
    .scheme = "Basic",
    .order = 3,
    .remembers = true,
    .configure = basic_file_configure,
    .release = basic_file_release,
    .start = basic_file_start,
    .cancel = basic_file_cancel,
    .challenge = basic_file_challenge,
};
