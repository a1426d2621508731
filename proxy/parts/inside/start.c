#include "inside/start.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/threads.h"
#include "inside/runners.h"

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
    struct inside_thread *thread;
};

static void inside_start_free(struct inside_start *start) {
    pthread_mutex_destroy(&start->lock);
    pthread_cond_destroy(&start->changed);
    FREE_OBJ(start);
}

static void inside_start_main(void *arg) {
    struct inside_start *start;
    CAST_OBJ(start, arg, INSIDE_START_MAGIC);
    start->order.run(start->context);
    pthread_mutex_lock(&start->lock);
    start->done = true;
    bool left = start->left;
    struct inside_thread *thread = start->thread;
    pthread_cond_signal(&start->changed);
    pthread_mutex_unlock(&start->lock);
    if (left) {
        start->order.leave(start->context);
        inside_start_free(start);
    }
    inside_thread_ended(&thread);
}

static bool inside_start_thread(struct inside_start *start) {
    start->thread = inside_thread_begun(start->order.name, "its function start does not come back");
    if (thread_start_alone(inside_start_main, start, "rt-start-%s", start->order.name))
        return true;
    inside_thread_ended(&start->thread);
    return false;
}

/* False: the proxy ends, and it is not done. */
static bool inside_start_wait(struct inside_start *start) {
    uint64_t began = clocks_milliseconds(CLOCK_MONOTONIC);
    bool told = false;
    pthread_mutex_lock(&start->lock);
    while (!start->done && !inside_starts_abandoned()) {
        threads_wait(&start->changed, &start->lock, threads_in(START_LOOK_EVERY));
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
    ALLOC_OBJ(start, INSIDE_START_MAGIC);
    start->order = *order;
    start->context = context;
    pthread_mutex_init(&start->lock, NULL);
    pthread_cond_init(&start->changed, NULL);
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
