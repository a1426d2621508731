/*
 * A slot: the right of one request to be under way at one server of a group. While all servers are
 * full, the request waits in the group's queue for a slot.
 *
 *     origin_slot_init(&slot, group, net, mailbox, &transaction->task, &needs);
 *     switch (origin_slot_take(&slot)) {
 *     case ORIGIN_SLOT_TAKEN:    slot.member is where to go; give &slot to origin_call_start
 *     case ORIGIN_SLOT_WAITING:  all servers are full: the task will run; call again then
 *     case ORIGIN_SLOT_REFUSED:  the queue is full, too
 *     case ORIGIN_SLOT_EXPIRED:  the request has waited for queue_timeout
 *     case ORIGIN_SLOT_NONE:     the request has been tried at every server
 *     case ORIGIN_SLOT_EMPTY:    name servers name no server for the group
 *     }
 *     origin_slot_close(&slot);       any time
 *
 * The call reports how the server did (origin_slot_answered, origin_slot_failed). It leaves the
 * slot when it has no connection any more; then origin_slot_take finds another server. A slot that
 * becomes free goes to the request that has waited longest, in whatever thread that runs.
 *
 * Threads: the worker's; some fields are under the group's lock, see below. Memory: the caller's;
 * it must live as long as the group's.
 */
#ifndef RETORT_ORIGIN_SLOT_H
#define RETORT_ORIGIN_SLOT_H

#include "net/context.h"
#include "origin/group.h"

enum origin_slot_state {
    ORIGIN_SLOT_WAITING,
    ORIGIN_SLOT_TAKEN,
    ORIGIN_SLOT_REFUSED,
    ORIGIN_SLOT_EXPIRED,
    ORIGIN_SLOT_NONE,
    ORIGIN_SLOT_EMPTY
};

struct origin_slot_needs {
    uint64_t hash;     /* see settings: hash_by */
    bool repeatable;   /* whether the request may be sent twice */
    bool only_up;      /* no server at all rather than one that is known to be down */
    bool any_status;   /* whether no answer counts as a failure */
    uint64_t deadline; /* loop time by which waiting must end; TIMER_NEVER: the queue's own */
};

struct origin_slot {
    unsigned magic;
#define ORIGIN_SLOT_MAGIC 0x04195ea7u
    struct origin_group *group;
    struct net_context *net;
    struct mailbox *mailbox;
    struct task *task;
    struct origin_slot_needs needs;
    uint64_t tried[ORIGINS_TRIES_MAX];
    unsigned tried_count;
    struct waiter *waiter;
    struct timer timer; /* while it waits */
    bool expired;
    bool judged; /* the member's outcome has been told */
    /* Under the group's lock while it waits. */
    struct origin_member *member; /* NULL: none */
    bool probe;
    uint64_t epoch;        /* number of times that the member had gone down when it was chosen */
    struct list_link link; /* in the queue */
    struct list_link waiting;
};

void origin_slot_init(struct origin_slot *slot, struct origin_group *group, struct net_context *net,
                      struct mailbox *mailbox, struct task *task,
                      const struct origin_slot_needs *needs);
enum origin_slot_state origin_slot_take(struct origin_slot *slot);
/* The server has answered with this status. */
void origin_slot_answered(struct origin_slot *slot, unsigned status);
void origin_slot_failed(struct origin_slot *slot, const char *error);
/* The connection is not used any more. Does nothing when it was already left. */
void origin_slot_leave(struct origin_slot *slot);
void origin_slot_close(struct origin_slot *slot);

#endif
