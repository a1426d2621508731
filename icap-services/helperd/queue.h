/*
 * The queue of a pool: jobs that wait, told apart by what they will cost and by whose they are.
 *
 *     queue_init(&queue);
 *     queue_add(&queue, job);                  to the end of what its client has in its lane
 *     struct job *job = queue_take(&queue, LANE_SMALL);     whose turn it is; NULL: none waits
 *     queue_put_back(&queue, job);             it is the next one of its lane again
 *     queue_remove(job);                       wherever it stands
 *     struct job *job = queue_most_greedy(&queue, lane, newcomer);    who goes when there is no room
 *
 * Two lanes, so that no small job stands behind a large one. In each lane the clients take turns by
 * what their jobs cost (deficit round robin: Shreedhar and Varghese, 1995): one with a thousand
 * jobs waiting delays another no more than one with two. Jobs of the same client are in the order
 * in which they came. When there is no room, the client with the most work waiting gives way, as in
 * that paper.
 *
 * A share is what one client has waiting in one lane; it lives as long as something waits in it.
 * Clients are compared by their whole names. Addresses of IPv6 count by their /64 network, which is
 * what one client is given. Those that tell no name share one share.
 *
 * Jobs belong to whoever added them. Threads: one.
 */
#ifndef RETORT_HELPERD_QUEUE_H
#define RETORT_HELPERD_QUEUE_H

#include "base/list.h"
#include "service/helper_protocol.h"

#include <stdint.h>

enum lane { LANE_SMALL, LANE_LARGE, LANE_COUNT };

/* No job counts for less than a tiny picture, nor for more than none that is ever done. */
enum { QUEUE_COST_LEAST = 4096, QUEUE_COST_MOST = 1 << 30 };

struct job;

struct share {
    unsigned magic;
#define SHARE_MAGIC 0x53686172u
    struct list_link link; /* in the lane's round */
    struct list_link jobs; /* the oldest first */
    char client[HELPER_CLIENT_MAX];
    unsigned count;
    uint64_t cost;    /* of all that waits in it */
    uint64_t deficit; /* what it may still spend in this turn */
};

struct queue_lane {
    struct list_link shares; /* the first one has the turn */
    unsigned count;          /* jobs that wait */
    unsigned share_count;
    uint64_t cost;
};

struct queue {
    struct queue_lane lanes[LANE_COUNT];
};

/* What a job has for the queue. */
struct queue_place {
    struct list_link link;
    struct queue *queue;
    struct share *share; /* NULL: it does not wait */
    enum lane lane;
    uint64_t cost;
    char client[HELPER_CLIENT_MAX];
};

void queue_init(struct queue *queue);
/* The client as one of those that shares are for. */
void queue_set_client(struct queue_place *place, const char *client);
void queue_add(struct queue *queue, struct job *job);
void queue_put_back(struct queue *queue, struct job *job);
void queue_remove(struct job *job);
struct job *queue_take(struct queue *queue, enum lane lane);
/* Any job, in no order; NULL: none waits. */
struct job *queue_any(struct queue *queue);

/* The newest job of the client with the most work in the lanes from `first` on, counting what
 * `newcomer` would add to its own; NULL when that is the newcomer's client itself. */
struct job *queue_most_greedy(struct queue *queue, enum lane first, const struct job *newcomer);
/* The cost of what will be served before a job of that place's client and lane, if it was the last
 * of its client: all others have at most as much as that client before it. */
uint64_t queue_cost_before(const struct queue *queue, const struct queue_place *place);
unsigned queue_count(const struct queue *queue);
/* The share with the most work waiting; NULL: none. */
const struct share *queue_largest_share(const struct queue *queue, enum lane lane);

const char *lane_text(enum lane lane);

#endif
