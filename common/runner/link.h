/*
 * A link: two rings, by which a worker and a runner exchange frames, as one of the two sees them.
 *
 *     struct link link;
 *     link_open(&link, board_ring(board, i, BOARD_TO_RUNNER), board_ring(board, i, BOARD_TO_WORKER), fd);
 *     if (!link_send(&link, &frame, bytes)) ...           no room; link_await_room, and later again
 *     switch (link_receive(&link, &frame, payload)) ...   payload: FRAME_PAYLOAD bytes of the caller's
 *     link_flush(&link);                                  after a batch: wakes the other side if it sleeps
 *
 * A frame is in the ring as a whole or not at all. LINK_BROKEN: what is there is no frame, or an index
 * of the ring is impossible; that is final.
 *
 * Threads: one on each side.
 */
#ifndef RETORT_RUNNER_LINK_H
#define RETORT_RUNNER_LINK_H

#include "base/ring.h"
#include "runner/frame.h"
#include "service/module.h"

enum link_status { LINK_EMPTY, LINK_FRAME, LINK_BROKEN };

enum { LINK_RING = 128 * 1024 };

/* One direction, in memory that both sides see. It begins as zero. */
struct link_ring {
    struct ring_shared shared;
    alignas(RING_LINE) char bytes[LINK_RING];
};

struct link {
    struct ring out, in;
    int wake_fd; /* the other side's eventfd; not owned */
    bool sent, received;
};

void link_open(struct link *link, struct link_ring *out, struct link_ring *in, int wake_fd);
/* How many bytes a frame may have behind it now; 0: not even a frame without any. */
size_t link_room(struct link *link);
bool link_send(struct link *link, const struct frame *frame, const void *payload);
/* True: this side will be woken when there is room for a frame of any length. */
bool link_await_room(struct link *link);
enum link_status link_receive(struct link *link, struct frame *frame, char *payload);
void link_flush(struct link *link);
/* True: nothing is there, and the other side will wake this one. */
bool link_sleep(struct link *link);
/* Writes an eventfd. */
void link_wake(int fd);

/*
 * A board: the memory that the proxy shares with one runner. It holds two rings for each worker, the
 * runner's sign of life, and what the service counts.
 *
 *     struct board *board = mmap(NULL, board_size(workers), ...);         zero at first
 *     struct link_ring *ring = board_ring(board, worker, BOARD_TO_RUNNER);
 *
 * Threads: any; the rings as base/ring.h says. The proxy takes nothing here for true: a wrong number of a
 * service's own counter is all that a wrong value can cause.
 */

enum board_direction { BOARD_TO_RUNNER, BOARD_TO_WORKER };

struct board {
    _Atomic uint64_t asked, answered; /* the runner copies the first to the second */
    _Atomic uint64_t counts[SERVICE_MODULE_COUNTERS];
    struct link_ring rings[];
};

static inline size_t board_size(unsigned workers) {
    return sizeof(struct board) + 2 * (size_t)workers * sizeof(struct link_ring);
}

static inline struct link_ring *board_ring(struct board *board, unsigned worker,
                                           enum board_direction direction) {
    return &board->rings[2 * worker + direction];
}

#endif
