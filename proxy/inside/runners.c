#include "inside/runners.h"

#include "base/assert.h"
#include "inside/desk.h"
#include "runner/runner.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* All runners of all instances that have not ended. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_ended = PTHREAD_COND_INITIALIZER;
static unsigned all_count;
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
    runners->desks = xcalloc(workers, sizeof(struct inside_desk *));
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
        inside_desk_free(&runners->desks[i]);
    for (unsigned i = 0; i < runners->count; i++) {
        inside_run_release(&runners->runners[i].run);
        pthread_mutex_destroy(&runners->runners[i].lock);
        if (runners->runners[i].watcher_fd >= 0)
            close(runners->runners[i].watcher_fd);
    }
    free(runners->desks);
    FREE_OBJ(runners);
}

static void runners_drop(struct inside_runners *runners) {
    if (atomic_fetch_sub(&runners->left, 1) == 1)
        runners->on_end(runners->owner);
}

void inside_thread_begun(void) {
    pthread_mutex_lock(&all_lock);
    all_count++;
    pthread_mutex_unlock(&all_lock);
}

void inside_thread_ended(void) {
    pthread_mutex_lock(&all_lock);
    all_count--;
    pthread_cond_broadcast(&all_ended);
    pthread_mutex_unlock(&all_lock);
}

void inside_runner_begun(struct inside_runner *runner) {
    atomic_fetch_add(&runner->runners->left, 1);
    inside_thread_begun();
}

void inside_runner_ended(struct inside_runner *runner) {
    runners_drop(runner->runners);
    inside_thread_ended();
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
    struct timespec until;
    bool ended;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&all_lock);
    while (all_count > 0 && pthread_cond_timedwait(&all_ended, &all_lock, &until) != ETIMEDOUT)
        ;
    ended = all_count == 0;
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

bool inside_runner_thread(void *(*run)(void *), void *arg) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool started = pthread_create(&thread, &attributes, run, arg) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Threads */

struct runner_thread {
    struct runner runner;
    struct inside_runner *place;
    struct inside_run *run; /* referenced */
};

static void *runners_thread_main(void *arg) {
    struct runner_thread *thread = arg;
    struct inside_runner *place = thread->place;
    runner_run(&thread->runner);
    runner_release(&thread->runner);
    inside_run_release(&thread->run);
    free(thread);
    inside_runner_ended(place);
    return NULL;
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
    if (made && inside_runner_thread(runners_thread_main, thread)) {
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
