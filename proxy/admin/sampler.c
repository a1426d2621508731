#include "admin/sampler.h"

#include "admin/connections.h"
#include "base/assert.h"
#include "base/clocks.h"

#include <errno.h>
#include <signal.h>

/* The counters at one moment, of which a sample has the difference. */
struct moment {
    uint64_t time; /* nanoseconds of the monotonic clock */
    struct counters counters;
    uint64_t requests;
    struct times times;
};

struct sampler {
    unsigned magic;
#define SAMPLER_MAGIC 0x53414d50u
    struct admin_calls calls;
    pthread_mutex_t *turn;
    uint64_t every; /* nanoseconds */
    struct history *history;
    pthread_t thread;
    pthread_mutex_t lock; /* of `over` */
    pthread_cond_t wake;
    bool over;
    bool begun; /* `last` is set */
    struct moment last;
};

/* The durations of a tunnel are its client's, not the proxy's. */
static bool is_measured(unsigned result) {
    return result != RESULT_TUNNEL && result != RESULT_BUMP;
}

/* False: a worker does not answer, so its counters are missing. */
static bool sampler_look(struct sampler *sampler, struct moment *moment) {
    struct admin_report report = {0};
    *moment = (struct moment){0};
    pthread_mutex_lock(sampler->turn);
    sampler->calls.report(sampler->calls.context, &report);
    pthread_mutex_unlock(sampler->turn);
    moment->time = clocks_nanoseconds(CLOCK_MONOTONIC);
    moment->counters = report.counters;
    for (unsigned result = 0; result < COUNTED_RESULTS; result++) {
        const struct times *times = &report.requests.results[result].times;
        moment->requests += times->count;
        if (is_measured(result))
            times_sum(&moment->times, times);
    }
    bool whole = report.workers_silent == 0;
    admin_report_release(&report);
    return whole;
}

static uint64_t grown(uint64_t now, uint64_t before) {
    return now > before ? now - before : 0;
}

static void sampler_add(struct sampler *sampler, const struct moment *now) {
    const struct moment *last = &sampler->last;
    struct times times = {.count = grown(now->times.count, last->times.count),
                          .sum = grown(now->times.sum, last->times.sum)};
    for (unsigned i = 0; i < TIMES_COUNT; i++)
        times.below[i] = grown(now->times.below[i], last->times.below[i]);
    struct history_sample sample = {
        .at = clocks_milliseconds(CLOCK_REALTIME),
        .lasted = (now->time - last->time) / 1000000,
        .requests = grown(now->requests, last->requests),
#define COUNTED(name, counter, help) .name = grown(now->counters.counter, last->counters.counter),
#define LEVEL(name, counter, help)   .name = now->counters.counter,
#include "admin/history.def"
#undef COUNTED
#undef LEVEL
    };
    history_add(sampler->history, &sample, &times);
}

static void sampler_step(struct sampler *sampler) {
    struct moment now;
    if (!sampler_look(sampler, &now))
        return;
    if (sampler->begun)
        sampler_add(sampler, &now);
    sampler->begun = true;
    sampler->last = now;
}

/* False: the sampler is to end. */
static bool sampler_sleep(struct sampler *sampler, uint64_t until) {
    const struct timespec end = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    int result = 0;
    pthread_mutex_lock(&sampler->lock);
    while (!sampler->over && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&sampler->wake, &sampler->lock, &end);
    bool over = sampler->over;
    pthread_mutex_unlock(&sampler->lock);
    return !over;
}

static void *sampler_run(void *arg) {
    struct sampler *sampler;
    CAST_OBJ(sampler, arg, SAMPLER_MAGIC);
    uint64_t next = clocks_nanoseconds(CLOCK_MONOTONIC);
    do {
        uint64_t now = clocks_nanoseconds(CLOCK_MONOTONIC);
        sampler_step(sampler);
        if (sampler->calls.connections != NULL)
            admin_connections_sweep(sampler->calls.connections, now / 1000000);
        next += sampler->every;
        if (next <= now)
            next = now + sampler->every;
    } while (sampler_sleep(sampler, next));
    return NULL;
}

static void sampler_release(struct sampler *sampler) {
    history_free(&sampler->history);
    pthread_cond_destroy(&sampler->wake);
    pthread_mutex_destroy(&sampler->lock);
    FREE_OBJ(sampler);
}

/* Signals are the main thread's. */
static bool sampler_start_thread(struct sampler *sampler) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool started = pthread_create(&sampler->thread, NULL, sampler_run, sampler) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct sampler *sampler_start(const struct admin_calls *calls, pthread_mutex_t *turn,
                              uint64_t every) {
    struct sampler *sampler;
    pthread_condattr_t attributes;
    ALLOC_OBJ(sampler, SAMPLER_MAGIC);
    sampler->calls = *calls;
    sampler->turn = turn;
    sampler->every = every * 1000000;
    sampler->history = history_new();
    pthread_mutex_init(&sampler->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (sampler_start_thread(sampler))
        return sampler;
    sampler_release(sampler);
    return NULL;
}

void sampler_stop(struct sampler **samplerp) {
    struct sampler *sampler = *samplerp;
    *samplerp = NULL;
    if (sampler == NULL)
        return;
    CHECK_OBJ(sampler, SAMPLER_MAGIC);
    pthread_mutex_lock(&sampler->lock);
    sampler->over = true;
    pthread_cond_signal(&sampler->wake);
    pthread_mutex_unlock(&sampler->lock);
    pthread_join(sampler->thread, NULL);
    sampler_release(sampler);
}

struct history *sampler_history(struct sampler *sampler) {
    CHECK_OBJ(sampler, SAMPLER_MAGIC);
    return sampler->history;
}
