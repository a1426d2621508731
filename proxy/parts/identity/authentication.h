/*
 * What all workers share to prove who clients are: the threads that compare passwords, the results
 * that are remembered, the failed attempts, and the checks that are under way.
 *
 *     struct authentication *authentication = authentication_new(&identity_settings(settings)->authentication, 4);
 *     check->authentication = authentication;         see identity/credentials_check.h
 *     authentication_configure(authentication, &identity_settings(settings)->authentication);        after a reload
 *     authentication_stop(authentication);            before the mailboxes of the workers end
 *     authentication_free(&authentication);
 *
 * Threads: any. Lock order: the lock of the checks under way is taken alone.
 */
#ifndef RETORT_IDENTITY_AUTHENTICATION_H
#define RETORT_IDENTITY_AUTHENTICATION_H

#include "identity/attempts.h"
#include "identity/authenticator_settings.h"
#include "identity/check_threads.h"
#include "identity/flights.h"
#include "identity/remembered.h"

struct authentication {
    unsigned magic;
#define AUTHENTICATION_MAGIC 0xa47e47f1u
    struct check_threads *threads;
    struct remembered *remembered;
    struct attempts *attempts;
    struct flights *flights;
};

/* `workers`: as many threads compare passwords unless the settings say something else. */
struct authentication *authentication_new(const struct authentication_settings *settings,
                                          unsigned workers);
/* For a reload: follows the limits that a reload can change. */
void authentication_configure(struct authentication *authentication,
                              const struct authentication_settings *settings);
/* Ends the threads. Checks that are asked for later end in CHECK_UNABLE. NULL: does nothing. */
void authentication_stop(struct authentication *authentication);
/* NULL stays NULL. */
void authentication_free(struct authentication **authenticationp);

#endif
