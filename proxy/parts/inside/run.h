/*
 * A run of a runner: the memory and the descriptors that the workers share with one thread or process
 * for as long as that lives. A process that is started again is another run.
 *
 *     struct inside_run *run = inside_run_new(workers, true, fd);   NULL: errno
 *     link_open(&link, board_ring(run->board, i, BOARD_TO_RUNNER), ..., run->event_fd);
 *     inside_run_end(run);                                          it is over: wakes all workers
 *     inside_run_break(run, "...");                                 a worker has caught it lying
 *     inside_run_release(&run);
 *
 * Threads: any; references are atomic.
 */
#ifndef RETORT_INSIDE_RUN_H
#define RETORT_INSIDE_RUN_H

#include "runner/link.h"

struct inside_run {
    unsigned magic;
#define INSIDE_RUN_MAGIC 0x1451de11u
    _Atomic unsigned references;
    unsigned workers;
    struct board *board;
    int memory_fd;              /* of the board, for a process; -1: a thread needs none */
    int event_fd;               /* wakes the runner */
    int *worker_fds;            /* wake the workers */
    int watcher_fd;             /* wakes who watches over the process; not owned */
    _Atomic unsigned under_way; /* exchanges of all workers */
    _Atomic bool stopping;      /* it is to end */
    uint64_t fingerprint;       /* of a process: of what it makes; set before others see the run */
    _Atomic bool ended;
    _Atomic(const char *) broken; /* why; NULL: it is not */
};

/* `shared`: with a process. */
struct inside_run *inside_run_new(unsigned workers, bool shared, int watcher_fd);
struct inside_run *inside_run_reference(struct inside_run *run);
void inside_run_release(struct inside_run **runp);
void inside_run_end(struct inside_run *run);
/* `why` is a constant. */
void inside_run_break(struct inside_run *run, const char *why);

#endif
