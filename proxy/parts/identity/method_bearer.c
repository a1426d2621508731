/* Bearer: tokens that an issuer has signed (RFC 6750, RFC 7519). */
#include "identity/authorization.h"
#include "identity/identity_method.h"
#include "identity/jwt.h"
#include "secrets/secret_file.h"

#include <stdio.h>
#include <sys/stat.h>

static void bearer_start(struct credentials_check *check) {
    const struct authenticator_settings *settings = &check->authenticator->settings;
    const struct jwt_rules rules = {
        .issuer = settings->issuer,
        .audiences = (const char *const *)settings->audience,
        .user_claim = settings->user_claim,
        .group_claim = settings->group_claim,
        .leeway = (int64_t)(settings->leeway / 1000),
    };
    struct jwt_user user;
    const char *reason;
    enum jwt_status status = jwt_verify(check->authenticator->state, check->authorization.token68,
                                        &rules, check->net->loop->wall, &user, &reason);
    check->no_guess = status == JWT_EXPIRED;
    if (status == JWT_GOOD)
        credentials_check_prove(check, user.name, user.groups, user.group_count, user.until);
    else
        credentials_check_refuse(check, reason);
    jwt_user_release(&user);
}

static bool bearer_take_keys(struct authenticator *authenticator, const struct secret_file *file,
                             char *error, size_t error_size) {
    const char *path = authenticator->settings.key_file;
    char reason[300];
    struct jwt_keys *keys = jwt_keys_parse(file->text, path, reason, sizeof reason);
    authenticator->state = keys;
    if (keys == NULL)
        snprintf(error, error_size, "%s: %s", path, reason);
    else if (jwt_keys_have_secret(keys) && (file->mode & (S_IROTH | S_IWOTH)) != 0)
        snprintf(error, error_size,
                 "%s: every user of this machine can open this file, and could make tokens with "
                 "the secret in it: change its group to retort's (chgrp) and run chmod 640",
                 path);
    else
        return true;
    return false;
}

/* The options that decide about a token are part of what it is remembered under. */
static void bearer_digest(struct authenticator *authenticator, struct slice file) {
    const struct authenticator_settings *settings = &authenticator->settings;
    authenticator_digest(authenticator, file);
    authenticator_digest(authenticator, slice_from(settings->issuer));
    authenticator_digest(authenticator, slice_from(settings->user_claim));
    authenticator_digest(authenticator, slice_from(settings->group_claim));
    authenticator_digest(authenticator,
                         slice_make((const char *)&settings->leeway, sizeof settings->leeway));
    for (size_t i = 0; settings->audience != NULL && settings->audience[i] != NULL; i++)
        authenticator_digest(authenticator, slice_from(settings->audience[i]));
}

static bool bearer_configure(struct authenticator *authenticator, char *error, size_t error_size) {
    struct secret_file file;
    if (!secret_file_read(&file, authenticator->settings.key_file, error, error_size))
        return false;
    bool good = bearer_take_keys(authenticator, &file, error, error_size);
    if (good)
        bearer_digest(authenticator, file.text);
    secret_file_release(&file);
    return good;
}

static void bearer_release(struct authenticator *authenticator) {
    struct jwt_keys *keys = authenticator->state;
    jwt_keys_free(&keys);
    authenticator->state = NULL;
}

static struct slice bearer_challenge(const struct authenticator *authenticator, struct slice realm,
                                     bool refused, struct arena *arena) {
    return challenge_bearer(realm, refused, arena);
}

const struct identity_method identity_bearer = {
    .name = "bearer",
    .scheme = "Bearer",
    .order = 2,
    .remembers = true,
    .configure = bearer_configure,
    .release = bearer_release,
    .start = bearer_start,
    .challenge = bearer_challenge,
};
