/*
 * The runners of an instance: where its service runs when it does not run in the workers. They are
 * threads of the proxy, or processes (inside/child.h).
 *
 *     struct inside_runners *runners = inside_runners_new(settings, workers);
 *     if (!inside_runners_start_threads(runners, ops, service, &host, &error)) ...
 *     struct inside_run *run = inside_runner_run(&runners->runners[i], &generation);     for a desk
 *     inside_runners_stop(&runners);            from any thread; they end soon, and then call
 *                                               runners->on_end(runners->owner)
 *     inside_runners_await(3000);               before the proxy ends: all of all instances
 *
 * Threads: each runner has a lock; runner_links belong to their workers. Nobody waits for a runner but
 * inside_runners_await: one that hangs in a function of its service would make others hang.
 */
#ifndef RETORT_INSIDE_RUNNERS_H
#define RETORT_INSIDE_RUNNERS_H

#include "adapt/service_report.h"
#include "inside/run.h"
#include "service/service.h"
#include "settings/settings.h"

#include <pthread.h>
#include <time.h>

struct inside_runner_links;
struct inside_runners;
struct inside_thread;

enum { RUNNER_REASON = 400 };

struct inside_runner {
    struct inside_runners *runners;
    pthread_mutex_t lock;
    struct inside_run *run;     /* referenced; NULL: it is down */
    char reason[RUNNER_REASON]; /* why it is down, or was the last time */
    time_t since;               /* up, or down */
    pid_t pid;                  /* 0: none */
    uint64_t starts, hangs;
    uint64_t retry_at; /* while it is down: when it is started again; TIMER_NEVER: it is not */
    _Atomic uint64_t generation;  /* of `run`; begins with 1 */
    int watcher_fd;               /* wakes who watches over the process */
    struct inside_thread *thread; /* while it runs, or is watched over */
};

struct inside_runners {
    unsigned magic;
#define INSIDE_RUNNERS_MAGIC 0x1451de44u
    void (*on_end)(void *owner);
    void *owner;
    const char *name; /* of the service; the owner's */
    bool processes;
    unsigned workers, count;
    _Atomic unsigned left; /* that have not ended, and one until inside_runners_stop */
    _Atomic bool stopping;
    struct inside_runner_links **runner_links; /* of the workers; NULL: not opened yet */
    struct inside_runner runners[];
};

struct inside_runners *inside_runners_new(const struct service_settings *settings,
                                          unsigned workers);
/* False and a sentence: the others that were started end. */
bool inside_runners_start_threads(struct inside_runners *runners, const struct service_ops *ops,
                                  void *service, const struct service_host *host,
                                  const char **error);
void inside_runners_stop(struct inside_runners *runners);
void inside_runners_free(struct inside_runners **runnersp);
/* False: some did not end in so many milliseconds. The log names them. */
bool inside_runners_await(unsigned milliseconds);

/* A thread or process that inside_runners_await knows. `what`: what the log says of one that does not end; a
 * literal. */
struct inside_thread *inside_thread_begun(const char *name, const char *what);
void inside_thread_ended(struct inside_thread **threadp);

/* The proxy ends: whoever waits for the first start of a process, or of a module in this one
 * (inside/code.h), gives up, soon. A process that is started again for the last messages goes on. */
void inside_starts_abandon(void);
/* Also where a signal that ends the proxy is pending: nobody takes signals before the proxy serves. */
bool inside_starts_abandoned(void);

/* Turns of the processes that are started for the first time: as many as there are cores at once, because a
 * module may need a core for as long as it starts. False: others have them now. */
unsigned inside_start_turns(void);
bool inside_start_take_turn(void);
void inside_start_end_turn(void);

/* Referenced; NULL: it is down. */
struct inside_run *inside_runner_run(struct inside_runner *runner, uint64_t *generation);
/* Takes the run over; NULL: it is down for that reason. */
void inside_runner_set(struct inside_runner *runner, struct inside_run **runp, pid_t pid,
                       const char *reason);
/* It is down, and is started again at that time. */
void inside_runner_pauses(struct inside_runner *runner, uint64_t retry_at);
/* It has not answered for hang_timeout. */
void inside_runner_hung(struct inside_runner *runner);
/* What the service counts itself in the present run of a process. */
uint64_t inside_runner_count(struct inside_runner *runner, unsigned counter);
/* States, reasons, and what `starts` says. */
void inside_runners_report(struct inside_runners *runners, struct service_report *report);
/* It has ended, and will not begin again. */
void inside_runner_ended(struct inside_runner *runner);
/* Lets its run end; whoever watches over a process ends that. */
void inside_runner_stop(struct inside_runner *runner);
/* Counts one that was begun. */
void inside_runner_begun(struct inside_runner *runner);

#endif
