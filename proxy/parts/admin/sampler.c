#include "admin/sampler.h"

#include "admin/connections.h"
#include "base/assert.h"
#include "base/threads.h"

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
    struct thread_clock clock;
    uint64_t next; /* when it is to look, by the clock */
    bool begun;    /* `last` is set */
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

static uint64_t sampler_tick(void *arg) {
    struct sampler *sampler;
    CAST_OBJ(sampler, arg, SAMPLER_MAGIC);
    uint64_t now = clocks_nanoseconds(CLOCK_MONOTONIC);
    sampler_step(sampler);
    if (sampler->calls.connections != NULL)
        admin_connections_sweep(sampler->calls.connections, now / 1000000);
    sampler->next += sampler->every;
    if (sampler->next <= now)
        sampler->next = now + sampler->every;
    return sampler->next;
}

struct sampler *sampler_start(const struct admin_calls *calls, pthread_mutex_t *turn,
                              uint64_t every) {
    struct sampler *sampler;
    ALLOC_OBJ(sampler, SAMPLER_MAGIC);
    sampler->calls = *calls;
    sampler->turn = turn;
    sampler->every = every * 1000000;
    sampler->history = history_new();
    sampler->next = clocks_nanoseconds(CLOCK_MONOTONIC);
    thread_clock_init(&sampler->clock, sampler_tick, sampler);
    thread_clock_wake(&sampler->clock, 0);
    if (!thread_clock_start(&sampler->clock, "rt-sampler"))
        sampler_stop(&sampler);
    return sampler;
}

void sampler_stop(struct sampler **samplerp) {
    struct sampler *sampler = *samplerp;
    *samplerp = NULL;
    if (sampler == NULL)
        return;
    CHECK_OBJ(sampler, SAMPLER_MAGIC);
    thread_clock_release(&sampler->clock);
    history_free(&sampler->history);
    FREE_OBJ(sampler);
}

struct history *sampler_history(struct sampler *sampler) {
    CHECK_OBJ(sampler, SAMPLER_MAGIC);
    return sampler->history;
}
