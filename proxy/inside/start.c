#include "inside/start.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "inside/runners.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { START_LOOK_EVERY = 50 }; /* milliseconds between two looks at whether the proxy ends */

struct inside_start {
    unsigned magic;
#define INSIDE_START_MAGIC 0x1451de57u
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct inside_start_order order;
    void *context;
    bool done, left;
};

static void inside_start_free(struct inside_start *start) {
    pthread_mutex_destroy(&start->lock);
    pthread_cond_destroy(&start->changed);
    FREE_OBJ(start);
}

static void *inside_start_main(void *arg) {
    struct inside_start *start;
    CAST_OBJ(start, arg, INSIDE_START_MAGIC);
    start->order.run(start->context);
    pthread_mutex_lock(&start->lock);
    start->done = true;
    bool left = start->left;
    pthread_cond_signal(&start->changed);
    pthread_mutex_unlock(&start->lock);
    if (left) {
        start->order.leave(start->context);
        inside_start_free(start);
    }
    inside_thread_ended();
    return NULL;
}

/* A module may make processes, which get the signals of the thread: those are as they would be in the
 * thread that waits. */
static bool inside_start_thread(struct inside_start *start) {
    pthread_attr_t attributes;
    pthread_t thread;
    inside_thread_begun();
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool started = pthread_create(&thread, &attributes, inside_start_main, start) == 0;
    pthread_attr_destroy(&attributes);
    if (!started)
        inside_thread_ended();
    return started;
}

static void inside_start_pause(struct inside_start *start) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += START_LOOK_EVERY * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&start->changed, &start->lock, &until);
}

/* False: the proxy ends, and it is not done. */
static bool inside_start_wait(struct inside_start *start) {
    uint64_t began = clocks_milliseconds(CLOCK_MONOTONIC);
    bool told = false;
    pthread_mutex_lock(&start->lock);
    while (!start->done && !inside_starts_abandoned()) {
        inside_start_pause(start);
        if (told || clocks_milliseconds(CLOCK_MONOTONIC) - began < start->order.patience)
            continue;
        told = true;
        log_warn("service %s: its module has not started within start_timeout (%llu ms); it is "
                 "waited for",
                 start->order.name, (unsigned long long)start->order.patience);
    }
    start->left = !start->done;
    bool done = start->done;
    pthread_mutex_unlock(&start->lock);
    return done;
}

static struct inside_start *inside_start_new(const struct inside_start_order *order,
                                             void *context) {
    struct inside_start *start;
    pthread_condattr_t attributes;
    ALLOC_OBJ(start, INSIDE_START_MAGIC);
    start->order = *order;
    start->context = context;
    pthread_mutex_init(&start->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&start->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return start;
}

bool inside_start_run(const struct inside_start_order *order, void *context) {
    struct inside_start *start = inside_start_new(order, context);
    bool done = true;
    if (inside_start_thread(start))
        done = inside_start_wait(start);
    else
        order->run(context);
    if (done)
        inside_start_free(start);
    return done;
}
