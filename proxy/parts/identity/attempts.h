/*
 * Attempts that failed, by client and by user: whoever guesses passwords has to wait.
 *
 *     struct attempt attempt;
 *     switch (attempts_begin(attempts, &attempt, client, user, now, &wait)) {
 *     case ATTEMPT_WAIT:        429, Retry-After: wait
 *     case ATTEMPT_CLIENT_WAIT: look at the credentials all the same; who has sent bad ones waits
 *     case ATTEMPT_MAY:         look at the credentials, and call one of
 *         attempts_good(attempts, &attempt, now, keep);
 *         attempts_bad(attempts, &attempt, now);
 *         attempts_drop(attempts, &attempt);           nobody knows
 *     }
 *
 * Credentials that are remembered as good need no attempt, but attempts_ask: otherwise a client that
 * has to wait could go on guessing what is remembered.
 *
 * Others stand behind the same address. So a client's wait is not for a user who has proved himself
 * from there lately: only the count of this client as this user limits guesses at his password. Nor
 * is it for credentials that nobody can guess, and that name no user: tokens and tickets. Bad ones
 * are counted by themselves, and their sender is told to wait.
 *
 * There are three counts. That of a client as one user slows down who guesses the password of a
 * user. That of a client slows down who tries one password with many names. That of a user only
 * says that the user is attacked from many places: then each client may fail once as this user, and
 * waits longer, unless the user has proved himself from there lately. So no number of attackers
 * locks a user out who has the right password: it is accepted from any client that has not failed
 * itself. Attempts that have begun count as failed until their end, so it does not help to try many
 * passwords at the same moment.
 *
 * Spellings of a name that differ in case or in blanks count as one, since a directory takes them
 * for one user.
 *
 * A client is an IPv4 address, or an IPv6 network of 64 bits. Names that exist and names that do
 * not are the same here.
 *
 * The tables have a fixed size. When a place is needed, an entry makes room that has expired, or
 * else the one with the lowest count: whoever was refused does not free himself by making up names,
 * nor does he make others unknown.
 *
 * Threads: any. Units: milliseconds of a clock that is never set back.
 */
#ifndef RETORT_IDENTITY_ATTEMPTS_H
#define RETORT_IDENTITY_ATTEMPTS_H

#include "base/slice.h"
#include "identity/authenticator_settings.h"
#include "secrets/secret_digest.h"

struct attempts;

enum attempt_verdict { ATTEMPT_MAY, ATTEMPT_WAIT, ATTEMPT_CLIENT_WAIT };

/* One attempt, from attempts_begin to its end. */
struct attempt {
    bool begun, has_user, in_client;
    unsigned char pair[SECRET_DIGEST], client[SECRET_DIGEST], user[SECRET_DIGEST];
};

struct attempts *attempts_new(const struct authentication_settings *settings);
/* Takes the limits, but for the number of entries. */
void attempts_configure(struct attempts *attempts, const struct authentication_settings *settings);
void attempts_free(struct attempts **attemptsp);

/* `client`: a key of address_network_key. `user`: empty when the credentials do not say who. After
 * ATTEMPT_WAIT the attempt has not begun. `wait` is 0 with ATTEMPT_MAY only. */
enum attempt_verdict attempts_begin(struct attempts *attempts, struct attempt *attempt,
                                    struct slice client, struct slice user, uint64_t now,
                                    uint64_t *wait);
/* May credentials be used that are remembered as good? Takes little time while nobody has to wait. */
enum attempt_verdict attempts_ask(struct attempts *attempts, struct slice client, struct slice user,
                                  uint64_t now, uint64_t *wait);
/* Ends the attempt. `keep`: for how long the result is remembered; the user is known at this client
 * for attempts_forget longer, so who comes back in time is never unknown between two proofs. */
void attempts_good(struct attempts *attempts, struct attempt *attempt, uint64_t now, uint64_t keep);
void attempts_bad(struct attempts *attempts, struct attempt *attempt, uint64_t now);
/* Harmless when the attempt has not begun or has ended. */
void attempts_drop(struct attempts *attempts, struct attempt *attempt);

#endif
