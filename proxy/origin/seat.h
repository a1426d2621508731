/*
 * A seat: a request's place at one server of a group, or in the queue for one.
 *
 *     origin_seat_init(&seat, group, net, mailbox, &transaction->task, &how);
 *     switch (origin_seat_take(&seat)) {
 *     case SEAT_TAKEN:    seat.member is where to go; give &seat to origin_call_start
 *     case SEAT_WAITING:  all servers are full: the task will run; ask again
 *     case SEAT_REFUSED:  so is the queue
 *     case SEAT_EXPIRED:  it has waited for queue_timeout
 *     case SEAT_NONE:     no server is left that it has not been tried at
 *     }
 *     origin_seat_close(&seat);       any time
 *
 * The call tells the seat how the server did (origin_seat_answered, _failed) and leaves it when it
 * has let go of its connection; then origin_seat_take finds another server. A seat that is left
 * goes to the one who has waited longest, in whatever thread.
 *
 * Threads: the worker's, but for what stands under the group's lock. Memory: the caller's, as long
 * as the group's.
 */
#ifndef RETORT_ORIGIN_SEAT_H
#define RETORT_ORIGIN_SEAT_H

#include "net/context.h"
#include "origin/group.h"

enum seat_state { SEAT_WAITING, SEAT_TAKEN, SEAT_REFUSED, SEAT_EXPIRED, SEAT_NONE };

struct origin_seat_needs {
    uint64_t hash;     /* see settings: hash_by */
    bool repeatable;   /* the request may be sent twice */
    bool only_up;      /* rather no server than one that is known to be down */
    bool any_status;   /* no answer counts as a failure */
    uint64_t deadline; /* loop time by which waiting must end; TIMER_NEVER: the queue's own */
};

struct origin_seat {
    unsigned magic;
#define ORIGIN_SEAT_MAGIC 0x04195ea7u
    struct origin_group *group;
    struct net_context *net;
    struct mailbox *mailbox;
    struct task *task;
    struct origin_seat_needs needs;
    uint64_t tried[ORIGINS_TRIES_MAX];
    unsigned tried_count;
    struct waiter *waiter;
    struct timer timer; /* while it waits */
    bool expired;
    bool judged; /* the member's outcome has been told */
    /* Under the group's lock while it waits. */
    struct origin_member *member; /* NULL: none */
    bool probe;
    uint64_t epoch;        /* the member's downs when it was chosen */
    struct list_link link; /* in the queue */
    struct list_link waiting;
};

void origin_seat_init(struct origin_seat *seat, struct origin_group *group, struct net_context *net,
                      struct mailbox *mailbox, struct task *task,
                      const struct origin_seat_needs *needs);
enum seat_state origin_seat_take(struct origin_seat *seat);
/* The server has answered with this status. */
void origin_seat_answered(struct origin_seat *seat, unsigned status);
void origin_seat_failed(struct origin_seat *seat, const char *error);
/* The connection is done with; harmless when it was before. */
void origin_seat_leave(struct origin_seat *seat);
void origin_seat_close(struct origin_seat *seat);

#endif
