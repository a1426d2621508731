/*
 * A worker: one helper process and the socket to it.
 *
 *     DOWN -> IDLE <-> BUSY -> LEAVING -> DOWN
 *       ^________________________|
 *
 * worker_start forks and executes the pool's command with the socket as descriptor 0, in a session
 * of its own (a helper may run programs; they go with it), at the pool's nice level, with no other
 * descriptor than 0, 1 and 2, which are a pipe into the log (output.h). A worker that leaves (asked
 * to, killed, or crashed) is LEAVING until its process has been waited for.
 *
 * The pool learns of everything through the three callbacks it passes; none is called from inside
 * worker_start, worker_give, worker_retire or worker_kill.
 */
#ifndef RETORT_HELPERD_WORKER_H
#define RETORT_HELPERD_WORKER_H

#include "base/list.h"
#include "event/loop.h"
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
    /* `result`: what it sent before it ended and was not heard yet; NULL: nothing. */
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
    struct timer job_timer; /* the deadline, while BUSY */
    struct timer timer;     /* DOWN: when to start again; LEAVING: when to kill */
    uint64_t started;       /* loop's milliseconds */
    uint64_t served;        /* by this process */
    uint64_t ended_cpu;     /* of the last process: milliseconds, with programs it started */
    unsigned failures;      /* in a row, for the back-off */
    bool replace;           /* to be restarted when idle */
    bool surplus;           /* to be removed when idle */
    bool spare;             /* one more, for small jobs alone */
    bool at_work;           /* on a job of `lane`, perhaps for nobody any more */
    enum lane lane;
    char client[HELPER_CLIENT_MAX]; /* whose job that is */
    bool overdue;                   /* killed at the deadline of its job */
    bool retired;                   /* this process has been asked to leave */
};

/* False with errno when there is no process to be had. */
bool worker_start(struct worker *worker, char *const *command, const struct helper_terms *terms);
/* Sends a job, that may use `cpu` milliseconds (0: any); false when the worker is gone. */
bool worker_give(struct worker *worker, const struct helper_packet *packet, uint64_t cpu);
/* Milliseconds of CPU time that its process has used, without those of programs it started. */
uint64_t worker_cpu(const struct worker *worker);
/* Gives a running one the nice level of the terms; false when only a new process can have it. */
bool worker_renice(const struct worker *worker, const struct helper_terms *terms);
/* Asks it to leave by closing the socket; it is killed if it takes longer than `milliseconds`. */
void worker_retire(struct worker *worker, uint64_t milliseconds);
void worker_kill(struct worker *worker);
/* The process has been waited for, and had used so many milliseconds of CPU time. */
void worker_exited(struct worker *worker, int wait_status, uint64_t cpu);

const char *worker_state_text(enum worker_state state);

#endif
