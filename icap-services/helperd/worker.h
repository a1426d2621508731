/*
 * A worker: one helper process and the socket to it.
 *
 *     DOWN -> IDLE <-> BUSY -> LEAVING -> DOWN
 *       ^________________________|
 *
 * worker_start forks and executes the pool's command at the pool's nice level. Descriptor 0 of the
 * process is the socket, and descriptors 1 and 2 are a pipe into the log (output.h); it has no
 * other descriptor. The socket of a helper that speaks lines (line_port.h) is descriptor 1 as well,
 * and only descriptor 2 is the pipe. The process has a session of its own, so that the programs that it runs can be
 * killed with it. A worker that was asked to leave, was killed or has crashed is LEAVING until its
 * process has been waited for.
 *
 * The three callbacks tell the pool what happens to the worker. worker_start, worker_give,
 * worker_retire and worker_kill call none of them. Threads: one.
 */
#ifndef RETORT_HELPERD_WORKER_H
#define RETORT_HELPERD_WORKER_H

#include "base/list.h"
#include "event/loop.h"
#include "helperd/line_port.h"
#include "helperd/output.h"
#include "helperd/queue.h"
#include "helperd/settings.h"
#include "service/helper_protocol.h"

enum worker_state { WORKER_DOWN, WORKER_IDLE, WORKER_BUSY, WORKER_LEAVING };

struct worker;
struct job;

struct worker_callbacks {
    void (*on_result)(struct worker *worker, struct helper_packet *result);
    void (*on_lost)(struct worker *worker); /* its socket closed or spoke nonsense */
    /* `result`: what the worker sent before it ended and nobody has read yet; NULL: nothing. */
    void (*on_exit)(struct worker *worker, int wait_status, struct helper_packet *result);
};

struct worker {
    unsigned magic;
#define WORKER_MAGIC 0x576f726bu
    struct list_link link; /* in the pool's list */
    void *pool;
    const struct worker_callbacks *callbacks;
    struct loop *loop;
    enum worker_state state;
    pid_t pid;
    int fd;
    struct event event;
    struct job *job; /* while BUSY, unless its client has gone */
    uint64_t job_id;
    struct output output;
    struct line_port lines;
    struct timer job_timer; /* the deadline, while BUSY */
    struct timer timer;     /* DOWN: when to start again; LEAVING: when to kill */
    uint64_t started;       /* loop's milliseconds */
    uint64_t served;        /* jobs done by this process */
    uint64_t ended_cpu;     /* of the last process: milliseconds, with programs it started */
    unsigned failures;      /* in a row, for the back-off */
    bool replace;           /* to be restarted when idle */
    bool surplus;           /* to be removed when idle */
    bool spare;             /* one more worker, for small jobs alone */
    bool at_work;           /* on a job of `lane`, even if its client has gone */
    enum lane lane;
    uint64_t got_job;               /* microseconds of the monotonic clock */
    char client[HELPER_CLIENT_MAX]; /* whose job that is */
    bool overdue;                   /* killed at the deadline of its job */
    bool retired;                   /* this process has been asked to leave */
};

/* False with errno when no process can be started. */
bool worker_start(struct worker *worker, char *const *command, const struct helper_terms *terms);
/* Sends a job, which may use `cpu` milliseconds of CPU time (0: any); false when the worker is
 * gone. */
bool worker_give(struct worker *worker, const struct helper_packet *packet, uint64_t cpu);
/* Milliseconds of CPU time that its process has used, without those of programs it started. */
uint64_t worker_cpu(const struct worker *worker);
/* Gives a running process the nice level of the terms; false when only a new process can have
 * it. */
bool worker_renice(const struct worker *worker, const struct helper_terms *terms);
/* Asks the process to leave, by closing the socket. It is killed after `milliseconds`. */
void worker_retire(struct worker *worker, uint64_t milliseconds);
void worker_kill(struct worker *worker);
/* Tells the worker that its process has been waited for; `cpu` milliseconds of CPU time were
 * used. */
void worker_exited(struct worker *worker, int wait_status, uint64_t cpu);

const char *worker_state_text(enum worker_state state);

#endif
