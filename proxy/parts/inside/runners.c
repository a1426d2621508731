#include "inside/runners.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/threads.h"
#include "inside/child.h"
#include "inside/runner_links.h"
#include "runner/runner.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct inside_thread {
    struct list_link link;
    const char *name; /* of the service; kept for good */
    const char *what; /* why it may not end */
};

/* All that have not ended. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_ended = PTHREAD_COND_INITIALIZER;
static struct list_link all_threads = {&all_threads, &all_threads};
static _Atomic bool starts_abandoned;
static _Atomic unsigned starting;

struct inside_runners *inside_runners_new(const struct service_settings *settings,
                                          unsigned workers) {
    unsigned count = settings->threads;
    struct inside_runners *runners =
        xcalloc(1, sizeof *runners + count * sizeof runners->runners[0]);
    runners->magic = INSIDE_RUNNERS_MAGIC;
    runners->processes = settings->runs == SERVICE_RUNS_PROCESS;
    runners->workers = workers;
    runners->count = count;
    runners->runner_links = xcalloc(workers, sizeof(struct inside_runner_links *));
    atomic_init(&runners->left, 1);
    for (unsigned i = 0; i < count; i++) {
        struct inside_runner *runner = &runners->runners[i];
        runner->runners = runners;
        pthread_mutex_init(&runner->lock, NULL);
        runner->since = time(NULL);
        runner->retry_at = TIMER_NEVER;
        atomic_init(&runner->generation, 1);
        runner->watcher_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    return runners;
}

void inside_runners_free(struct inside_runners **runnersp) {
    struct inside_runners *runners = *runnersp;
    *runnersp = NULL;
    if (runners == NULL)
        return;
    CHECK_OBJ(runners, INSIDE_RUNNERS_MAGIC);
    for (unsigned i = 0; i < runners->workers; i++)
        inside_runner_links_free(&runners->runner_links[i]);
    for (unsigned i = 0; i < runners->count; i++) {
        inside_run_release(&runners->runners[i].run);
        pthread_mutex_destroy(&runners->runners[i].lock);
        if (runners->runners[i].watcher_fd >= 0)
            close(runners->runners[i].watcher_fd);
    }
    free(runners->runner_links);
    FREE_OBJ(runners);
}

static void runners_drop(struct inside_runners *runners) {
    if (atomic_fetch_sub(&runners->left, 1) == 1)
        runners->on_end(runners->owner);
}

struct inside_thread *inside_thread_begun(const char *name, const char *what) {
    struct inside_thread *thread = xcalloc(1, sizeof *thread);
    thread->name = inside_name_keep(name);
    thread->what = what;
    pthread_mutex_lock(&all_lock);
    list_append(&all_threads, &thread->link);
    pthread_mutex_unlock(&all_lock);
    return thread;
}

void inside_thread_ended(struct inside_thread **threadp) {
    struct inside_thread *thread = *threadp;
    *threadp = NULL;
    pthread_mutex_lock(&all_lock);
    list_remove(&thread->link);
    pthread_cond_broadcast(&all_ended);
    pthread_mutex_unlock(&all_lock);
    free(thread);
}

void inside_runner_begun(struct inside_runner *runner) {
    atomic_fetch_add(&runner->runners->left, 1);
    runner->thread =
        inside_thread_begun(runner->runners->name,
                            runner->runners->processes
                                ? "its process does not end"
                                : "its thread does not end: a function of it does not come back");
}

void inside_runner_ended(struct inside_runner *runner) {
    struct inside_thread *thread = runner->thread; /* the runner may be freed */
    runners_drop(runner->runners);
    inside_thread_ended(&thread);
}

void inside_starts_abandon(void) {
    atomic_store(&starts_abandoned, true);
}

bool inside_starts_abandoned(void) {
    sigset_t pending;
    if (atomic_load(&starts_abandoned))
        return true;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

unsigned inside_start_turns(void) {
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? (unsigned)CPU_COUNT(&cores) : 1;
}

bool inside_start_take_turn(void) {
    unsigned taken = atomic_load(&starting), turns = inside_start_turns();
    while (taken < turns)
        if (atomic_compare_exchange_weak(&starting, &taken, taken + 1))
            return true;
    return false;
}

void inside_start_end_turn(void) {
    atomic_fetch_sub(&starting, 1);
}

bool inside_runners_await(unsigned milliseconds) {
    uint64_t until = threads_in(milliseconds);
    pthread_mutex_lock(&all_lock);
    while (!list_empty(&all_threads) && threads_wait(&all_ended, &all_lock, until))
        continue;
    bool ended = list_empty(&all_threads);
    LIST_FOR_EACH (link, &all_threads) {
        const struct inside_thread *thread = CONTAINER_OF(link, const struct inside_thread, link);
        log_error("service %s: %s; it is left behind", thread->name, thread->what);
    }
    pthread_mutex_unlock(&all_lock);
    return ended;
}

/* One runner */

struct inside_run *inside_runner_run(struct inside_runner *runner, uint64_t *generation) {
    struct inside_run *run;
    pthread_mutex_lock(&runner->lock);
    *generation = atomic_load(&runner->generation);
    run = runner->run == NULL ? NULL : inside_run_reference(runner->run);
    pthread_mutex_unlock(&runner->lock);
    return run;
}

void inside_runner_set(struct inside_runner *runner, struct inside_run **runp, pid_t pid,
                       const char *reason) {
    struct inside_run *before;
    pthread_mutex_lock(&runner->lock);
    before = runner->run;
    if ((before == NULL) != (*runp == NULL) || runner->starts == 0)
        runner->since = time(NULL);
    runner->run = *runp;
    runner->pid = pid;
    runner->starts += *runp != NULL;
    if (reason != NULL)
        snprintf(runner->reason, sizeof runner->reason, "%s", reason);
    atomic_fetch_add(&runner->generation, 1);
    pthread_mutex_unlock(&runner->lock);
    *runp = NULL;
    inside_run_release(&before);
}

void inside_runner_pauses(struct inside_runner *runner, uint64_t retry_at) {
    pthread_mutex_lock(&runner->lock);
    runner->retry_at = retry_at;
    pthread_mutex_unlock(&runner->lock);
}

void inside_runner_hung(struct inside_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    runner->hangs++;
    pthread_mutex_unlock(&runner->lock);
}

uint64_t inside_runner_count(struct inside_runner *runner, unsigned counter) {
    pthread_mutex_lock(&runner->lock);
    uint64_t count = runner->run == NULL ? 0 : atomic_load(&runner->run->board->counts[counter]);
    pthread_mutex_unlock(&runner->lock);
    return count;
}

/* Threads */

struct runner_thread {
    struct runner runner;
    struct inside_runner *place;
    struct inside_run *run; /* referenced */
};

static void runners_thread_main(void *arg) {
    struct runner_thread *thread = arg;
    struct inside_runner *place = thread->place;
    runner_run(&thread->runner);
    runner_release(&thread->runner);
    inside_run_release(&thread->run);
    free(thread);
    inside_runner_ended(place);
}

static const char *runners_start_thread(struct inside_runner *place, const struct service_ops *ops,
                                        void *service, const struct service_host *host) {
    struct inside_runners *runners = place->runners;
    struct inside_run *run = inside_run_new(runners->workers, false, place->watcher_fd);
    if (run == NULL)
        return "there are no descriptors or memory left for its threads";
    struct runner_thread *thread = xcalloc(1, sizeof *thread);
    thread->place = place;
    thread->run = inside_run_reference(run);
    const struct runner_task task = {
        .ops = ops,
        .service = service,
        .host = host,
        .board = run->board,
        .workers = runners->workers,
        .event_fd = run->event_fd,
        .worker_fds = run->worker_fds,
        .stopping = &run->stopping,
    };
    bool made = runner_init(&thread->runner, &task);
    inside_runner_begun(place);
    if (made && thread_start_alone(runners_thread_main, thread, "rt-run-%s", runners->name)) {
        inside_runner_set(place, &run, 0, NULL);
        return NULL;
    }
    if (made)
        runner_release(&thread->runner);
    inside_run_release(&thread->run);
    inside_run_release(&run);
    free(thread);
    inside_runner_ended(place);
    return "its threads can't be started";
}

bool inside_runners_start_threads(struct inside_runners *runners, const struct service_ops *ops,
                                  void *service, const struct service_host *host,
                                  const char **error) {
    *error = NULL;
    for (unsigned i = 0; *error == NULL && i < runners->count; i++)
        *error = runners_start_thread(&runners->runners[i], ops, service, host);
    return *error == NULL;
}

void inside_runner_stop(struct inside_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    if (runner->run != NULL) {
        atomic_store(&runner->run->stopping, true);
        link_wake(runner->run->event_fd);
    }
    pthread_mutex_unlock(&runner->lock);
    link_wake(runner->watcher_fd);
}

void inside_runners_stop(struct inside_runners *runners) {
    CHECK_OBJ(runners, INSIDE_RUNNERS_MAGIC);
    atomic_store(&runners->stopping, true);
    for (unsigned i = 0; i < runners->count; i++)
        inside_runner_stop(&runners->runners[i]);
    runners_drop(runners);
}

/* Reports */

static void report_one(struct inside_runner *runner, struct service_report *report) {
    struct service_endpoint_report *endpoint = &report->endpoints[0];
    struct service_runner_report *own = &report->runners[report->runner_count++];
    pthread_mutex_lock(&runner->lock);
    *own = (struct service_runner_report){.up = runner->run != NULL,
                                          .since = runner->since,
                                          .pid = runner->pid,
                                          .starts = runner->starts,
                                          .hangs = runner->hangs,
                                          .retry_at = runner->retry_at};
    snprintf(own->error, sizeof own->error, "%s", runner->reason);
    if (runner->reason[0] != '\0' && (!own->up || endpoint->error[0] == '\0'))
        snprintf(endpoint->error, sizeof endpoint->error, "%s", runner->reason);
    pthread_mutex_unlock(&runner->lock);
    endpoint->since = own->since > endpoint->since ? own->since : endpoint->since;
    if (!own->up && own->retry_at < endpoint->retry_at)
        endpoint->retry_at = own->retry_at;
}

void inside_runners_report(struct inside_runners *runners, struct service_report *report) {
    struct service_endpoint_report *endpoint = &report->endpoints[0];
    bool up = false;
    CHECK_OBJ(runners, INSIDE_RUNNERS_MAGIC);
    report->runs = runners->processes ? SERVICE_RUNS_PROCESS : SERVICE_RUNS_THREAD;
    report->runner_count = 0;
    for (unsigned i = 0; i < runners->count && i < SERVICE_RUNNERS; i++) {
        report_one(&runners->runners[i], report);
        up |= report->runners[i].up;
    }
    report->state = endpoint->state = up ? SERVICE_UP : SERVICE_DOWN;
}
