/*
 * Threads: each has a name, takes no signals, and is joined, unless it is started to be left alone. Three
 * kinds stand on one another.
 *
 * A thread, which does what it likes:
 *
 *     if (!thread_start(&worker->thread, worker_main, worker, "rt-worker-%u", worker->index)) ...
 *     thread_join(&worker->thread);                     also when it was not started
 *
 * A queue: threads that wait for jobs, which are links of their owner's. Another one is started when all are
 * busy, up to a number.
 *
 *     thread_queue_init(&pool->jobs, 4, pool_main, pool, "rt-pool");
 *     pthread_mutex_lock(&pool->jobs.lock);
 *     if (!thread_queue_add(&pool->jobs, &job->link)) ...        no thread can be started, or it ends
 *     pthread_mutex_unlock(&pool->jobs.lock);
 *     static void pool_main(void *arg) {                         in each thread
 *         while ((link = thread_queue_take(&pool->jobs)) != NULL)
 *             ... CONTAINER_OF(link, struct job, link) ...
 *     }
 *     thread_queue_end(&pool->jobs, THREADS_DRAIN);
 *     thread_queue_release(&pool->jobs);
 *
 * A clock: a thread that ticks when it is time, or when somebody wakes it.
 *
 *     thread_clock_init(&sampler->clock, sampler_tick, sampler);
 *     if (!thread_clock_start(&sampler->clock, "rt-sampler")) ...
 *     thread_clock_wake(&sampler->clock, 0);                     now, or right behind the present tick
 *     static uint64_t sampler_tick(void *arg) {
 *         ...
 *         return threads_in(5000);                               or THREADS_NEVER: when it is woken
 *     }
 *     thread_clock_release(&sampler->clock);
 *
 * Names are what `top -H` and /proc/PID/task show: "rt-" and the role, 15 bytes; what is longer is cut.
 * docs/OPERATIONS.md lists them.
 *
 * Signals: all but those of crashes are blocked in the thread, and in processes that it makes: who makes
 * some sets their mask.
 *
 * Threads: any. What a queue or a clock calls runs without their locks. Units: moments are nanoseconds of
 * CLOCK_MONOTONIC. Errors: false, with errno, where the system has no thread left.
 */
#ifndef RETORT_BASE_THREADS_H
#define RETORT_BASE_THREADS_H

#include "base/clocks.h"
#include "base/list.h"

#include <pthread.h>

/* ---- a thread ----------------------------------------------------------------------------- */

struct thread {
    pthread_t id;
    bool started; /* and not joined */
};

bool thread_start(struct thread *thread, void (*run)(void *arg), void *arg, const char *name, ...)
    __attribute__((format(printf, 4, 5)));
/* Nobody joins it. */
bool thread_start_alone(void (*run)(void *arg), void *arg, const char *name, ...)
    __attribute__((format(printf, 3, 4)));
void thread_join(struct thread *thread);
/* False: it has not ended within so many milliseconds. */
bool thread_join_within(struct thread *thread, unsigned milliseconds);

/* ---- waiting ------------------------------------------------------------------------------ */

#define THREADS_NEVER UINT64_MAX

static inline uint64_t threads_in(uint64_t milliseconds) {
    return clocks_nanoseconds(CLOCK_MONOTONIC) + milliseconds * 1000000;
}

/* Waits until somebody signals the condition, or for no reason, at most until that moment. False: it has come. */
bool threads_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until);

/* ---- a queue ------------------------------------------------------------------------------ */

enum threads_end {
    THREADS_DRAIN = 1, /* the jobs that wait are taken yet */
    THREADS_DROP,      /* they stay: their owner takes them with thread_queue_pop */
};

struct thread_queue {
    pthread_mutex_t lock; /* of all that follows; owners may guard more by it */
    pthread_cond_t changed;
    struct list_link jobs;
    unsigned waiting;             /* of these */
    unsigned most, started, idle; /* threads */
    unsigned ends;                /* enum threads_end; 0: it goes on */
    struct thread *threads;
    void (*run)(void *arg);
    void *arg;
    const char *name;
};

/* `most`: threads. `name`: a literal. */
void thread_queue_init(struct thread_queue *queue, unsigned most, void (*run)(void *arg), void *arg,
                       const char *name);
/* Under the lock. Starts a thread if all are busy and there may be more. False: there is none, or the queue ends. */
bool thread_queue_staff(struct thread_queue *queue);
/* Under the lock. False: as thread_queue_staff, and the job is still the caller's. */
bool thread_queue_add(struct thread_queue *queue, struct list_link *job);
/* Under the lock. NULL: no job waits. */
struct list_link *thread_queue_pop(struct thread_queue *queue);
/* Waits for a job. NULL: the queue has ended. The first under the lock, which is released meanwhile. */
struct list_link *thread_queue_await(struct thread_queue *queue);
struct list_link *thread_queue_take(struct thread_queue *queue);
/* No job comes any more. Does not wait. */
void thread_queue_end(struct thread_queue *queue, enum threads_end how);
/* Behind thread_queue_end. */
void thread_queue_join(struct thread_queue *queue);
/* Ends it if nobody has (THREADS_DROP), and joins its threads. */
void thread_queue_release(struct thread_queue *queue);

/* ---- a clock ------------------------------------------------------------------------------ */

struct thread_clock {
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    struct thread thread;
    uint64_t due;
    bool ends;
    uint64_t (*tick)(void *arg); /* returns when the next one is due, unless it is woken before */
    void *arg;
};

/* It ticks first when it is woken. */
void thread_clock_init(struct thread_clock *clock, uint64_t (*tick)(void *arg), void *arg);
/* True also when it runs already. `name`: a literal. */
bool thread_clock_start(struct thread_clock *clock, const char *name);
/* It ticks at that moment, if not before. */
void thread_clock_wake(struct thread_clock *clock, uint64_t at);
/* For its tick: sleeps for so many milliseconds. False: the clock ends. */
bool thread_clock_sleep(struct thread_clock *clock, unsigned milliseconds);
/* Waits for the tick under way. No other one comes, also when it is started again. */
void thread_clock_end(struct thread_clock *clock);
void thread_clock_release(struct thread_clock *clock);

#endif
