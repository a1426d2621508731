/*
 * Runner links: what one worker has of the runners of an instance: a link to each, and the exchanges that
 * are under way there.
 *
 *     struct inside_runner_links *runner_links = inside_runner_links_open(runners, worker, loop);
 *     struct inside_link *link = inside_runner_links_choose(runner_links, &refusal);      NULL: none can take more
 *     uint32_t slot = inside_link_take(link, remote);                     it is under way
 *     inside_link_send(link, &frame, bytes, &remote->blocked);
 *     inside_link_give(link, slot, true, left);                           nobody wants more of it
 *     inside_runner_links_close(&runner_links);
 *
 * Frames that come are checked here as far as they are about slots, and then by the exchange
 * (inside/remote.h). The first one that can't be is the last one that is read: the run counts as
 * broken, its messages fail, and who watches over the process ends it.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_INSIDE_RUNNER_LINKS_H
#define RETORT_INSIDE_RUNNER_LINKS_H

#include "event/loop.h"
#include "inside/runners.h"
#include "runner/link.h"

struct inside_remote;

enum inside_slot_state { INSIDE_SLOT_FREE, INSIDE_SLOT_OPEN, INSIDE_SLOT_CLOSING };

struct inside_slot {
    struct inside_remote *remote; /* NULL: nobody waits for its frames */
    uint32_t serial;
    enum inside_slot_state state;
    bool close_due; /* CLOSE could not be sent yet */
    uint64_t left;  /* bytes of frames that may still cross CLOSE; one without any counts as one */
};

struct inside_link {
    struct inside_runner_links *runner_links;
    struct inside_runner *runner;
    struct inside_run *run; /* referenced; NULL: there is none now */
    uint64_t generation;    /* of the runner, when `run` was taken */
    struct link link;
    struct event event;
    struct task task;         /* frames are left, or something is to be flushed */
    struct list_link blocked; /* exchanges that wait for room */
    struct inside_slot slots[FRAME_SLOTS];
    uint32_t free_slots[FRAME_SLOTS];
    unsigned free_count, due_count;
};

struct inside_runner_links {
    unsigned magic;
#define INSIDE_RUNNER_LINKS_MAGIC 0x1451ded5u
    struct inside_runners *runners;
    struct loop *loop; /* NULL: it is closed, until it is opened again */
    unsigned worker, users;
    unsigned link_count;
    unsigned next; /* the link that is looked at first */
    char payload[FRAME_PAYLOAD];
    struct inside_link links[];
};

/* Why no runner takes a message. */
enum inside_link_refusal { INSIDE_LINK_DOWN, INSIDE_LINK_FULL };

struct inside_runner_links *inside_runner_links_open(struct inside_runners *runners,
                                                     unsigned worker, struct loop *loop);
void inside_runner_links_close(struct inside_runner_links **runner_linksp);
/* By the runners, when they end. */
void inside_runner_links_free(struct inside_runner_links **runner_linksp);

struct inside_link *inside_runner_links_choose(struct inside_runner_links *runner_links,
                                               enum inside_link_refusal *refusal);
uint32_t inside_link_take(struct inside_link *link, struct inside_remote *remote);
/* `opened`: the runner has heard of it. `left`: bytes of frames that it may still send. */
void inside_link_give(struct inside_link *link, uint32_t slot, bool opened, uint64_t left);
/* False: the ring has no room; the exchange is woken when there is some. */
bool inside_link_send(struct inside_link *link, const struct frame *frame, const void *bytes,
                      struct list_link *blocked);

#endif
