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

#include "event/waiter.h"
#include "identity/attempts.h"
#include "identity/authenticator_settings.h"
#include "identity/check_threads.h"
#include "identity/remembered.h"
#include "secrets/secret_digest.h"

/*
 * Checks that are under way: of several checks of the same credentials at the same moment, in whatever
 * worker, one asks and the others wait for its result.
 *
 *     if (!flights_enter(flights, key, &place, net->mailbox, &task))
 *         ... somebody else checks them: the task runs when that one has ended; look into what is
 *         ... remembered then, and enter again
 *     flights_leave(&place, net->loop);               in any case, also when the client has left
 *
 * A check waits at most twice. When there is no result then, because the first ones left or the result
 * is not remembered, it checks for itself. A place belongs to the thread of its mailbox.
 */

struct flights;
struct flight;

/* Begins zeroed. */
struct flight_place {
    struct flights *flights; /* NULL: it neither leads nor waits */
    struct flight *leads;
    struct waiter *waiter;
    unsigned waits;
};

struct flights *flights_new(void);
void flights_free(struct flights **flightsp);
/* True: the caller checks. False: the task will run. */
bool flights_enter(struct flights *flights, const unsigned char key[SECRET_DIGEST],
                   struct flight_place *place, struct mailbox *mailbox, struct task *task);
/* Ends the flight and wakes who waits for it, or ends the wait. `loop`: the caller's own. */
void flights_leave(struct flight_place *place, const struct loop *loop);

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
