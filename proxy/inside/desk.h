/*
 * A desk: what one worker has of the runners of an instance: a link to each, and the exchanges that
 * are under way there.
 *
 *     struct inside_desk *desk = inside_desk_open(runners, worker, loop);
 *     struct desk_link *link = inside_desk_choose(desk, &refusal);      NULL: none can take more
 *     uint32_t slot = desk_link_take(link, remote);                     it is under way
 *     desk_link_send(link, &frame, bytes, &remote->blocked);
 *     desk_link_give(link, slot, true, left);                           nobody wants more of it
 *     inside_desk_close(&desk);
 *
 * Frames that come are checked here as far as they are about slots, and then by the exchange
 * (inside/remote.h). The first one that can't be is the last one that is read: the run counts as
 * broken, its messages fail, and who watches over the process ends it.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_INSIDE_DESK_H
#define RETORT_INSIDE_DESK_H

#include "event/loop.h"
#include "inside/runners.h"
#include "runner/link.h"

struct inside_remote;

enum desk_slot_state { DESK_SLOT_FREE, DESK_SLOT_OPEN, DESK_SLOT_CLOSING };

struct desk_slot {
    struct inside_remote *remote; /* NULL: nobody waits for its frames */
    uint32_t serial;
    enum desk_slot_state state;
    bool close_due; /* CLOSE could not be sent yet */
    uint64_t left;  /* bytes of frames that may still cross CLOSE; one without any counts as one */
};

struct desk_link {
    struct inside_desk *desk;
    struct inside_runner *runner;
    struct inside_run *run; /* referenced; NULL: there is none now */
    uint64_t generation;    /* of the runner, when `run` was taken */
    struct link link;
    struct event event;
    struct task task;         /* frames are left, or something is to be flushed */
    struct list_link blocked; /* exchanges that wait for room */
    struct desk_slot slots[FRAME_SLOTS];
    uint32_t free_slots[FRAME_SLOTS];
    unsigned free_count, due_count;
};

struct inside_desk {
    unsigned magic;
#define INSIDE_DESK_MAGIC 0x1451ded5u
    struct inside_runners *runners;
    struct loop *loop; /* NULL: it is closed, until it is opened again */
    unsigned worker, users;
    unsigned link_count;
    unsigned next; /* the link that is looked at first */
    char payload[FRAME_PAYLOAD];
    struct desk_link links[];
};

/* Why no runner takes a message. */
enum desk_refusal { DESK_DOWN, DESK_FULL };

struct inside_desk *inside_desk_open(struct inside_runners *runners, unsigned worker,
                                     struct loop *loop);
void inside_desk_close(struct inside_desk **deskp);
/* By the runners, when they end. */
void inside_desk_free(struct inside_desk **deskp);

struct desk_link *inside_desk_choose(struct inside_desk *desk, enum desk_refusal *refusal);
uint32_t desk_link_take(struct desk_link *link, struct inside_remote *remote);
/* `opened`: the runner has heard of it. `left`: bytes of frames that it may still send. */
void desk_link_give(struct desk_link *link, uint32_t slot, bool opened, uint64_t left);
/* False: the ring has no room; the exchange is woken when there is some. */
bool desk_link_send(struct desk_link *link, const struct frame *frame, const void *bytes,
                    struct list_link *blocked);
static inline bool desk_link_is_alive(const struct desk_link *link) {
    return link->run != NULL;
}

#endif
