#include "cache/purger.h"

#include "base/assert.h"

#include <time.h>

static uint64_t microseconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void purger_init(struct purger *purger, void (*walk)(void *arg), void *arg) {
    pthread_condattr_t monotonic;
    *purger = (struct purger){.walk = walk, .arg = arg};
    pthread_mutex_init(&purger->walking, NULL);
    pthread_mutex_init(&purger->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&purger->wanted, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void purger_release(struct purger *purger) {
    pthread_mutex_lock(&purger->lock);
    purger->stopping = true;
    pthread_cond_signal(&purger->wanted);
    pthread_mutex_unlock(&purger->lock);
    if (purger->started)
        pthread_join(purger->thread, NULL);
    pthread_cond_destroy(&purger->wanted);
    pthread_mutex_destroy(&purger->lock);
    pthread_mutex_destroy(&purger->walking);
}

/* Under `walking`. */
static void walk(struct purger *purger) {
    uint64_t begun = microseconds_of(CLOCK_THREAD_CPUTIME_ID);
    purger->walk(purger->arg);
    uint64_t took = microseconds_of(CLOCK_THREAD_CPUTIME_ID) - begun;
    uint64_t credit = (uint64_t)PURGER_CREDIT * 1000 * PURGER_SHARE;
    uint64_t now = microseconds_of(CLOCK_MONOTONIC), least = now > credit ? now - credit : 0;
    pthread_mutex_lock(&purger->lock);
    if (purger->paid_until < least)
        purger->paid_until = least;
    purger->paid_until += took * PURGER_SHARE;
    pthread_mutex_unlock(&purger->lock);
}

static void *walk_when_paid(void *arg) {
    struct purger *purger = arg;
    pthread_mutex_lock(&purger->lock);
    while (!purger->stopping) {
        const struct timespec until = {
            .tv_sec = (time_t)(purger->paid_until / 1000000),
            .tv_nsec = (long)(purger->paid_until % 1000000) * 1000,
        };
        if (!purger->pending) {
            pthread_cond_wait(&purger->wanted, &purger->lock);
        } else if (microseconds_of(CLOCK_MONOTONIC) < purger->paid_until) {
            pthread_cond_timedwait(&purger->wanted, &purger->lock, &until);
        } else {
            purger->pending = false;
            pthread_mutex_unlock(&purger->lock);
            purger_walk_now(purger);
            pthread_mutex_lock(&purger->lock);
        }
    }
    pthread_mutex_unlock(&purger->lock);
    return NULL;
}

void purger_walk_now(struct purger *purger) {
    pthread_mutex_lock(&purger->walking);
    walk(purger);
    pthread_mutex_unlock(&purger->walking);
}

bool purger_walk_soon(struct purger *purger) {
    pthread_mutex_lock(&purger->lock);
    bool paid = microseconds_of(CLOCK_MONOTONIC) >= purger->paid_until;
    if (!paid && !purger->pending) {
        purger->pending = true;
        purger->started =
            purger->started || pthread_create(&purger->thread, NULL, walk_when_paid, purger) == 0;
        paid = !purger->started; /* no other thread can walk */
        pthread_cond_signal(&purger->wanted);
    }
    pthread_mutex_unlock(&purger->lock);
    if (paid)
        purger_walk_now(purger);
    return paid;
}
