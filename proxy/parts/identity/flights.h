/*
 * Checks that are under way: of several checks of the same credentials at the same moment, in
 * whatever worker, one asks and the others wait for its result.
 *
 *     struct flight_place place = {.flights = NULL};
 *     if (!flights_enter(flights, key, &place, net->mailbox, &task))
 *         ... somebody else checks them: the task runs when that one has ended; look into what is
 *         ... remembered then, and enter again
 *     ...
 *     flights_leave(&place, net->loop);               in any case, also when the client has left
 *
 * A check waits at most twice. When there is no result then, because the first ones left or the
 * result is not remembered, it checks for itself.
 *
 * Threads: any; a place belongs to the thread of its mailbox. Lock: the flights' own.
 */
#ifndef RETORT_IDENTITY_FLIGHTS_H
#define RETORT_IDENTITY_FLIGHTS_H

#include "event/waiter.h"
#include "secrets/secret_digest.h"

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

#endif
