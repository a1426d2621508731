/*
 * What the files of a node share (node.h): node.c, reader.c and teller.c. The reader changes the place, the teller opens the
 * outbox; both do so under the lock, and read their own without it.
 *
 *     pthread_mutex_lock(&node->lock);
 *     while (!atomic_load(&node->stop) && ...)
 *         fleet_node_wait(node, 200);
 *     pthread_mutex_unlock(&node->lock);
 *
 * Threads: the node's two, and those that call node.h.
 */
#ifndef RETORT_FLEET_NODE_INTERNAL_H
#define RETORT_FLEET_NODE_INTERNAL_H

#include "base/threads.h"
#include "fleet/node.h"

/* FLEET_NOTED: events of which it is known where they stand. PAUSE: after a connection that failed. */
enum { FLEET_NOTED = 4096, FLEET_PAUSE_MIN = 50, FLEET_PAUSE_MAX = 2000, FLEET_NONCE = 17 };

/* An event of this node's own on its way, by which it proves what it knows. */
struct fleet_proof {
    char nonce[FLEET_NONCE];  /* "": none is under way */
    uint64_t at;              /* nanoseconds, before it was appended */
    struct fleet_mark behind; /* the newest mark */
    struct fleet_mark mark;   /* the event itself, when it was read */
    char generation[FLEET_GENERATION];
    bool follows; /* `behind` was there when it was appended, and the copies have it */
    bool read;    /* it was read back, and all in front of it was done */
};

struct fleet_node {
    unsigned magic;
#define FLEET_NODE_MAGIC 0xf1ee70deu
    struct fleet_demand demand;
    atomic_bool stop;
    struct thread reader, teller;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    struct fleet_place place;  /* the reader alone changes it */
    bool placed;               /* the reader knows where it is in the engine's generation */
    atomic_bool astray;        /* the teller has found that it does not */
    uint64_t generation_since; /* nanoseconds */
    bool awaits;               /* nodes that have not said the new generation yet */
    uint64_t joined;           /* nanoseconds of the first proof; 0: there was none */
    uint64_t steady_since;     /* since when it has been proven without a break */
    uint64_t proven_until;     /* nanoseconds */
    struct fleet_proof proof;
    /* NULL: another process of the node has it, or there is a fault. The teller alone opens and closes it. */
    struct fleet_outbox *outbox;
    unsigned outbox_users; /* threads that use it without the lock */
    bool outbox_is_new;
    bool retired;            /* another process of the node may have the state directory */
    uint64_t conflict_until; /* nanoseconds; another node has used the name */
    struct fleet_end
        renew; /* known: the outbox is an old copy, and a new epoch begins behind that */
    uint64_t sent, copied; /* numbers of events: the engine has them; and so have its copies */
    struct {
        uint64_t epoch, number;
        char id[FLEET_ID];
    } noted[FLEET_NOTED];
    unsigned watchers; /* threads that wait for the table of nodes */
    struct fleet_member *members;
    size_t member_count;
    uint64_t members_at; /* counts the times that it was read */
    bool teller_connected, reader_connected;
    char teller_trouble[FLEET_ERROR], reader_trouble[FLEET_ERROR], place_trouble[FLEET_ERROR];
    struct fleet_numbers numbers;
};

static inline uint64_t fleet_now(void) {
    return clocks_nanoseconds(CLOCK_MONOTONIC);
}

#define FLEET_MS UINT64_C(1000000)

void fleet_reader_run(void *node);
void fleet_teller_run(void *node);
/* Under the lock: waits for those who use the outbox. */
void fleet_node_close_outbox(struct fleet_node *node);
/* Nothing that is stored now is used again before the origin has been asked: says why, and counts it. */
bool fleet_node_doubt(struct fleet_node *node,
                      const char *why); /* false: a restart would undo it */
/* Notes where an event of this node's own stands. Under the lock. */
void fleet_node_note_place(struct fleet_node *node, uint64_t epoch, uint64_t number,
                           const char *id);
/* Waits under the lock for a change, at most so long. */
void fleet_node_wait(struct fleet_node *node, uint64_t milliseconds);
/* Notes trouble, and logs it when it differs from the last one; NULL: it is over. */
void fleet_node_note(struct fleet_node *node, char kept[FLEET_ERROR], const char *what,
                     const char *trouble);
/* A wait that grows: *pause is 0 behind a success. */
void fleet_node_pause(struct fleet_node *node, uint64_t *pause);

#endif
