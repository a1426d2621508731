/*
 * A runner: a loop that runs an instance of a service for messages that workers of the proxy have. It
 * is a thread of the proxy, or all that a process of its own does.
 *
 *     struct runner runner;
 *     runner_init(&runner, &task);
 *     runner_run(&runner);                                 until *task.stopping
 *     runner_release(&runner);
 *
 * Many exchanges are under way at once: one that waits lets others go on, and so does one whose reader
 * is slow. A function of the service that takes its time holds up the other exchanges of this runner,
 * and no worker.
 *
 * What the proxy writes into the board is checked by RUNNER_INSIST. In a process of its own, code of the
 * service may have written over it: then only this process ends, and says so in the log. In a thread it
 * can only be a bug of ours.
 *
 * Threads: one runs it; whoever sets *stopping writes the eventfd afterwards. Ownership: what the task
 * names is the caller's.
 */
#ifndef RETORT_RUNNER_RUNNER_H
#define RETORT_RUNNER_RUNNER_H

#include "event/loop.h"
#include "runner/link.h"

struct runner;
struct runner_exchange;

struct runner_link {
    struct runner *runner;
    struct link link;
    struct runner_exchange *exchanges[FRAME_SLOTS]; /* NULL: none */
    struct list_link blocked;                       /* exchanges that wait for room in the ring */
    bool closed_due[FRAME_SLOTS];                   /* CLOSED could not be sent yet */
    uint32_t closed_serials[FRAME_SLOTS];
    unsigned closed_count;
};

struct runner {
    unsigned magic;
#define RUNNER_MAGIC 0x72756e6eu
    const struct service_ops *ops;
    void *service;
    const struct service_host *host;
    struct board *board;
    struct loop loop;
    struct event event;
    struct task task; /* frames are left */
    struct runner_link *links;
    unsigned link_count;
    const _Atomic bool *stopping;
    bool owns_process; /* of the task */
    char payload[FRAME_PAYLOAD];
};

/* What it is to run, and for whom. */
struct runner_task {
    const struct service_ops *ops;
    void *service;
    const struct service_host *host;
    struct board *board;
    unsigned workers;
    int event_fd;
    const int *worker_fds;
    const _Atomic bool *stopping;
    bool owns_process; /* a process of its own runs it, and nothing else */
};

/* False: there are no descriptors left. */
bool runner_init(struct runner *runner, const struct runner_task *task);
void runner_run(struct runner *runner);
/* Ends the exchanges that are left. */
void runner_release(struct runner *runner);

_Noreturn void runner_overwritten(const struct runner *runner, const char *what, const char *file,
                                  int line, const char *function);

#define RUNNER_INSIST(runner, condition)                                                           \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            runner_overwritten((runner), #condition, __FILE__, __LINE__, __func__);                \
    } while (0)

#endif
