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

#include "event/mailbox.h"
#include "event/waiter.h"
#include "identity/attempts.h"
#include "identity/authenticator_settings.h"
#include "identity/remembered.h"
#include "net/address.h"
#include "secrets/secret_digest.h"

/*
 * Threads for checks that take long or may block: a good hash of a password takes a large part of a second,
 * and the loop of a worker must not stand still meanwhile.
 *
 *     compare->job = (struct check_job){.run = compare_run, .done = compare_done};
 *     if (!check_threads_post(threads, &compare->job, net->mailbox, client))
 *         credentials_check_fail(check, "...");    too many wait; the job is still the caller's
 *
 * `run` is called in a thread. Then `done` is called in the worker of the mailbox, and owns the job; also for
 * a job that was not run because the threads are stopped (job->ran is false). A job that was posted can't be
 * taken back: it has what it needs itself, and a check that ends only says so to its job. One client gets at
 * most a quarter of the places in the queue. Lock: the threads' own, never held while a job runs.
 */

struct check_threads;

struct check_job {
    void (*run)(struct check_job *job);
    void (*done)(struct check_job *job);
    bool ran;
    /* The threads' own. */
    struct message message;
    struct mailbox *mailbox;
    struct list_link link;
    size_t client_length;
    char client[ADDRESS_NETWORK_KEY];
};

/* `count`: how many threads there are at most; they are started when they are needed. */
struct check_threads *check_threads_new(unsigned count, unsigned queue_max);
void check_threads_set_queue(struct check_threads *threads, unsigned queue_max);
/* Ends the threads, after the jobs that run now. */
void check_threads_stop(struct check_threads *threads);
void check_threads_free(struct check_threads **threadsp);

/* False: the queue is full, the client has its share of it, or the threads are stopped. `client`: a
 * key of address_network_key. */
bool check_threads_post(struct check_threads *threads, struct check_job *job,
                        struct mailbox *mailbox, struct slice client);

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
