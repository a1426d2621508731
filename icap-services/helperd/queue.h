/*
 * The queue of a pool holds the jobs that wait. It keeps them apart by their cost and their client.
 *
 *     queue_init(&queue);
 *     queue_add(&queue, job);                  behind the jobs that its client has in its lane
 *     struct job *job = queue_take(&queue, LANE_SMALL);     the next one; NULL: none waits
 *     queue_put_back(&queue, job);             it is the next one of its lane again
 *     queue_remove(job);                       wherever it stands
 *     struct job *job = queue_most_greedy(&queue, lane, newcomer);    what goes to make room
 *
 * There are two lanes, so that no small job stands behind a large one. In each lane the clients
 * take turns by what their jobs cost (deficit round robin: Shreedhar and Varghese, 1995). So a
 * client with a thousand waiting jobs delays another client no more than a client with two. Jobs of
 * the same client keep the order in which they came. When there is no room, the client with the
 * most work waiting loses a job, as in that paper.
 *
 * A share is what one client has waiting in one lane. It lives as long as a job waits in it.
 * Clients are compared by their whole names. An IPv6 address counts as its /64 network, since one
 * client may have all addresses of it. All clients without a name have one share together.
 *
 * Jobs belong to whoever added them. Threads: one.
 */
#ifndef RETORT_HELPERD_QUEUE_H
#define RETORT_HELPERD_QUEUE_H

#include "base/list.h"
#include "service/helper_protocol.h"

#include <stdint.h>

enum lane { LANE_SMALL, LANE_LARGE, LANE_COUNT };

/* The least and the largest cost that a job is counted with: that of a tiny picture, and one that
 * is larger than any job that can be done. */
enum { QUEUE_COST_LEAST = 4096, QUEUE_COST_MOST = 1 << 30 };

struct job;

struct share {
    unsigned magic;
#define SHARE_MAGIC 0x53686172u
    struct list_link link; /* in the lane's round */
    struct list_link jobs; /* the oldest first */
    char client[HELPER_CLIENT_MAX];
    unsigned count;
    uint64_t cost;    /* of all jobs that wait in it */
    uint64_t deficit; /* cost that it may still spend in this turn */
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

/* The place of a job in the queue; a member of the job. */
struct queue_place {
    struct list_link link;
    struct queue *queue;
    struct share *share; /* NULL: it does not wait */
    enum lane lane;
    uint64_t cost;
    char client[HELPER_CLIENT_MAX];
};

void queue_init(struct queue *queue);
/* Sets the client of the place to the name that shares are kept by. */
void queue_set_client(struct queue_place *place, const char *client);
void queue_add(struct queue *queue, struct job *job);
void queue_put_back(struct queue *queue, struct job *job);
void queue_remove(struct job *job);
struct job *queue_take(struct queue *queue, enum lane lane);
/* Any job that waits, in no order; NULL: none waits. */
struct job *queue_any(struct queue *queue);

/* The newest job of the client that has the most work waiting in one lane, of the lanes from
 * `first` on. The cost of `newcomer` counts for its own client. NULL when the newcomer's client has
 * the most itself. */
struct job *queue_most_greedy(struct queue *queue, enum lane first, const struct job *newcomer);
/* The cost of the jobs that will be served before a new job with that place, as the last one of its
 * client. Each other client is served no more work before it than the client's own work, with the
 * new job. */
uint64_t queue_cost_before(const struct queue *queue, const struct queue_place *place);
unsigned queue_count(const struct queue *queue);
/* The share with the most work waiting; NULL: none. */
const struct share *queue_largest_share(const struct queue *queue, enum lane lane);

const char *lane_text(enum lane lane);

#endif
