/*
 * What an instance of a service does outside of exchanges: its timer, and the descriptors that it
 * watches (service.h, "Events outside of exchanges").
 *
 *     struct inside_watches *watches = inside_watches_new(loop, instance, 64, &tally);
 *     ...                                  the service calls service_watch in its timer
 *     inside_watches_free(&watches);       the last call of its timer and its descriptor has been
 *
 * One loop does it for all workers: that of the first one. The first call of the timer comes in the
 * loop's next round. The next one is due timer_period after the timer has returned, so a slow timer
 * does not pile up calls; nor does a descriptor that is always ready keep the loop from its other
 * work, because WATCHES_A_ROUND calls are made in one round.
 *
 * The descriptors stand in an epoll of their own, which the loop watches. So a service that closes a
 * descriptor while it is watched disturbs nobody who gets its number afterwards.
 *
 * An instance has these at most once: where it has them already, inside_watches_new gives them again,
 * and the last inside_watches_free ends them. What was counted last counts.
 *
 * Threads: that of the loop; inside_watches_add in any, where it returns false. Ownership: references
 * the instance. The descriptors are the service's. Errors: what can't be watched is counted.
 */
#ifndef RETORT_INSIDE_WATCHES_H
#define RETORT_INSIDE_WATCHES_H

#include "adapt/foreign_call.h"
#include "event/loop.h"
#include "inside/instance.h"

enum { WATCHES_A_ROUND = 16 };

struct inside_watches;

/* Where it counts, and says what is called; all live until inside_watches_free, or until another one is given. */
struct inside_watches_tally {
    uint64_t *slow;    /* calls that held the loop up */
    uint64_t *refused; /* descriptors that were one too many */
    struct foreign_call *foreign;
};

/* `most`: descriptors at a time. */
struct inside_watches *inside_watches_new(struct loop *loop, struct inside_instance *instance,
                                          size_t most, const struct inside_watches_tally *tally);
void inside_watches_free(struct inside_watches **watchesp);

/* service_host.watch, with an instance as its context. */
bool inside_watches_add(void *context, int fd, short events);

#endif
