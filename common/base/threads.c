#include "base/threads.h"

#include "base/assert.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- a thread ----------------------------------------------------------------------------- */

enum { NAME = 16 /* with its end: what the kernel keeps */ };

struct thread_begin {
    void (*run)(void *arg);
    void *arg;
    char name[NAME];
};

static void *thread_run(void *arg) {
    struct thread_begin begin = *(struct thread_begin *)arg;
    free(arg);
    pthread_setname_np(pthread_self(), begin.name);
    begin.run(begin.arg);
    return NULL;
}

static bool thread_create(pthread_t *id, void (*run)(void *arg), void *arg, const char *name,
                          va_list words) {
    struct thread_begin *begin = xmalloc(sizeof *begin);
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t all, before;
    *begin = (struct thread_begin){.run = run, .arg = arg};
    vsnprintf(begin->name, sizeof begin->name, name, words);
    sigfillset(&all);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        sigdelset(&all, crashes[i]); /* what a thread does to itself; somebody may have a handler */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = pthread_create(id, NULL, thread_run, begin);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errno != 0)
        free(begin);
    return errno == 0;
}

bool thread_start(struct thread *thread, void (*run)(void *arg), void *arg, const char *name, ...) {
    va_list words;
    va_start(words, name);
    thread->started = thread_create(&thread->id, run, arg, name, words);
    va_end(words);
    return thread->started;
}

bool thread_start_alone(void (*run)(void *arg), void *arg, const char *name, ...) {
    pthread_t id;
    va_list words;
    va_start(words, name);
    bool started = thread_create(&id, run, arg, name, words);
    va_end(words);
    if (started)
        pthread_detach(id);
    return started;
}

void thread_join(struct thread *thread) {
    if (thread->started)
        pthread_join(thread->id, NULL);
    thread->started = false;
}

bool thread_join_within(struct thread *thread, unsigned milliseconds) {
    const struct timespec until =
        clocks_timespec(clocks_nanoseconds(CLOCK_REALTIME) + (uint64_t)milliseconds * 1000000);
    if (thread->started)
        thread->started = pthread_timedjoin_np(thread->id, NULL, &until) != 0;
    return !thread->started;
}

/* ---- waiting ------------------------------------------------------------------------------ */

bool threads_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until) {
    const struct timespec end = clocks_timespec(until);
    if (until == THREADS_NEVER)
        return pthread_cond_wait(condition, lock) == 0;
    return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &end) != ETIMEDOUT;
}

/* ---- a queue ------------------------------------------------------------------------------ */

void thread_queue_init(struct thread_queue *queue, unsigned most, void (*run)(void *arg), void *arg,
                       const char *name) {
    *queue = (struct thread_queue){.most = most, .run = run, .arg = arg, .name = name};
    queue->threads = xcalloc(most, sizeof *queue->threads);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    list_init(&queue->jobs);
}

bool thread_queue_staff(struct thread_queue *queue) {
    if (queue->ends == 0 && queue->idle <= queue->waiting && queue->started < queue->most)
        queue->started += thread_start(&queue->threads[queue->started], queue->run, queue->arg,
                                       "%s", queue->name);
    return queue->ends == 0 && queue->started > 0;
}

bool thread_queue_add(struct thread_queue *queue, struct list_link *job) {
    if (!thread_queue_staff(queue))
        return false;
    list_append(&queue->jobs, job);
    queue->waiting++;
    pthread_cond_signal(&queue->changed);
    return true;
}

struct list_link *thread_queue_pop(struct thread_queue *queue) {
    struct list_link *job = list_first(&queue->jobs);
    if (job == NULL)
        return NULL;
    list_remove(job);
    queue->waiting--;
    return job;
}

struct list_link *thread_queue_await(struct thread_queue *queue) {
    while (list_empty(&queue->jobs) && queue->ends == 0) {
        queue->idle++;
        pthread_cond_wait(&queue->changed, &queue->lock);
        queue->idle--;
    }
    return queue->ends == THREADS_DROP ? NULL : thread_queue_pop(queue);
}

struct list_link *thread_queue_take(struct thread_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    struct list_link *job = thread_queue_await(queue);
    pthread_mutex_unlock(&queue->lock);
    return job;
}

void thread_queue_end(struct thread_queue *queue, enum threads_end how) {
    pthread_mutex_lock(&queue->lock);
    if (queue->ends == 0)
        queue->ends = how;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

void thread_queue_join(struct thread_queue *queue) {
    for (unsigned i = 0; i < queue->started; i++)
        thread_join(&queue->threads[i]);
}

void thread_queue_release(struct thread_queue *queue) {
    thread_queue_end(queue, THREADS_DROP);
    thread_queue_join(queue);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue->threads);
}

/* ---- a clock ------------------------------------------------------------------------------ */

void thread_clock_init(struct thread_clock *clock, uint64_t (*tick)(void *arg), void *arg) {
    *clock = (struct thread_clock){.tick = tick, .arg = arg, .due = THREADS_NEVER};
    pthread_mutex_init(&clock->lock, NULL);
    pthread_cond_init(&clock->changed, NULL);
}

static void thread_clock_main(void *arg) {
    struct thread_clock *clock = arg;
    pthread_mutex_lock(&clock->lock);
    while (!clock->ends) {
        if (clock->due > clocks_nanoseconds(CLOCK_MONOTONIC)) {
            threads_wait(&clock->changed, &clock->lock, clock->due);
            continue;
        }
        clock->due = THREADS_NEVER;
        pthread_mutex_unlock(&clock->lock);
        uint64_t next = clock->tick(clock->arg);
        pthread_mutex_lock(&clock->lock);
        clock->due = next < clock->due ? next : clock->due;
    }
    pthread_mutex_unlock(&clock->lock);
}

bool thread_clock_start(struct thread_clock *clock, const char *name) {
    pthread_mutex_lock(&clock->lock);
    bool started =
        clock->thread.started || thread_start(&clock->thread, thread_clock_main, clock, "%s", name);
    pthread_mutex_unlock(&clock->lock);
    return started;
}

void thread_clock_wake(struct thread_clock *clock, uint64_t at) {
    pthread_mutex_lock(&clock->lock);
    if (at < clock->due) {
        clock->due = at;
        pthread_cond_signal(&clock->changed);
    }
    pthread_mutex_unlock(&clock->lock);
}

bool thread_clock_sleep(struct thread_clock *clock, unsigned milliseconds) {
    uint64_t until = threads_in(milliseconds);
    pthread_mutex_lock(&clock->lock);
    while (!clock->ends && threads_wait(&clock->changed, &clock->lock, until))
        continue;
    bool goes_on = !clock->ends;
    pthread_mutex_unlock(&clock->lock);
    return goes_on;
}

void thread_clock_end(struct thread_clock *clock) {
    pthread_mutex_lock(&clock->lock);
    clock->ends = true;
    pthread_cond_signal(&clock->changed);
    pthread_mutex_unlock(&clock->lock);
    thread_join(&clock->thread);
}

void thread_clock_release(struct thread_clock *clock) {
    thread_clock_end(clock);
    pthread_cond_destroy(&clock->changed);
    pthread_mutex_destroy(&clock->lock);
}
