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

#include "runner/frame.h"
#include "runner/ring.h"

enum link_status { LINK_EMPTY, LINK_FRAME, LINK_BROKEN };

struct link {
    struct ring out, in;
    int wake_fd; /* the other side's eventfd; not owned */
    bool sent, received;
};

void link_open(struct link *link, struct ring_shared *out, struct ring_shared *in, int wake_fd);
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

#endif
