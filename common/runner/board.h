/*
 * A board: the memory that the proxy shares with one runner. It holds two rings for each worker, the
 * runner's sign of life, and what the service counts.
 *
 *     struct board *board = mmap(NULL, board_size(workers), ...);         zero at first
 *     struct ring_shared *ring = board_ring(board, worker, BOARD_TO_RUNNER);
 *
 * Threads: any; the rings as ring.h says. The proxy takes nothing here for true: a wrong number of a
 * service's own counter is all that a wrong value can cause.
 */
#ifndef RETORT_RUNNER_BOARD_H
#define RETORT_RUNNER_BOARD_H

#include "runner/ring.h"
#include "service/module.h"

enum board_direction { BOARD_TO_RUNNER, BOARD_TO_WORKER };

struct board {
    _Atomic uint64_t asked, answered; /* the runner copies the first to the second */
    _Atomic uint64_t counts[SERVICE_MODULE_COUNTERS];
    struct ring_shared rings[];
};

static inline size_t board_size(unsigned workers) {
    return sizeof(struct board) + 2 * (size_t)workers * sizeof(struct ring_shared);
}

static inline struct ring_shared *board_ring(struct board *board, unsigned worker,
                                             enum board_direction direction) {
    return &board->rings[2 * worker + direction];
}

#endif
