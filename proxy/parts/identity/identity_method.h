/*
 * A method to prove who a client is: a kind of credentials, and who knows whether they are good.
 *
 *     const struct identity_method identity_basic_file = {
 *         .name = "basic", .scheme = "Basic", .order = 2, .remembers = true,
 *         .configure = basic_file_configure, .release = basic_file_release,
 *         .start = basic_file_start, .cancel = basic_file_cancel,
 *         .challenge = basic_challenge,
 *     };
 *
 * authenticator.c finds the method of a section. `start` gets a check whose credentials are well
 * formed, were not proved lately, and may be tried: it ends it at once or later, by a function of
 * credentials_check.h. It never blocks: what does runs in a thread (authentication.h).
 *
 * Threads: configure and release in any; start and cancel in the check's worker.
 */
#ifndef RETORT_IDENTITY_IDENTITY_METHOD_H
#define RETORT_IDENTITY_IDENTITY_METHOD_H

#include "identity/authenticator.h"

struct identity_method {
    const char *name;   /* for logs: "basic" */
    const char *scheme; /* of the field (RFC 9110 §11.1); NULL: no field carries the proof */
    unsigned order;     /* of challenges: the lowest stands first */
    bool remembers;     /* the same credentials prove the same for a while */
    /* Loads files and sets authenticator->state, and adds what decides to the digest
     * (authenticator_digest). False: `error` says which file and what to do. NULL: nothing to do. */
    bool (*configure)(struct authenticator *authenticator, char *error, size_t error_size);
    void (*release)(struct authenticator *authenticator); /* NULL: nothing to do */
    void (*start)(struct credentials_check *check);
    /* The check is not wanted any more; nothing may touch it from then on. NULL: start never
     * leaves it waiting. */
    void (*cancel)(struct credentials_check *check);
    /* The value of the field that asks for credentials. `refused`: the client has sent some. */
    struct slice (*challenge)(const struct authenticator *authenticator, struct slice realm,
                              bool refused, struct arena *arena);
};

extern const struct identity_method identity_basic_file;
extern const struct identity_method identity_basic_helper;
extern const struct identity_method identity_bearer;
extern const struct identity_method identity_certificate;
extern const struct identity_method identity_negotiate;

#endif
