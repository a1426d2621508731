#include "admin/history.h"

#include "admin/connections.h"
#include "base/assert.h"
#include "base/clocks.h"
#include "base/threads.h"

#include <pthread.h>
#include <string.h>

struct history_ring {
    struct history_sample *samples;
    size_t size, count, next;
};

struct history {
    unsigned magic;
#define HISTORY_MAGIC 0x48495354u
    pthread_mutex_t lock;
    struct history_ring fine, coarse;
    unsigned gathered; /* fine samples in `sum` */
    struct history_sample sum;
    struct times sum_times;
};

struct history *history_new(void) {
    struct history *history;
    ALLOC_OBJ(history, HISTORY_MAGIC);
    pthread_mutex_init(&history->lock, NULL);
    history->fine.size = HISTORY_FINE;
    history->fine.samples = xcalloc(HISTORY_FINE, sizeof *history->fine.samples);
    history->coarse.size = HISTORY_COARSE;
    history->coarse.samples = xcalloc(HISTORY_COARSE, sizeof *history->coarse.samples);
    return history;
}

void history_free(struct history **historyp) {
    struct history *history = *historyp;
    *historyp = NULL;
    if (history == NULL)
        return;
    CHECK_OBJ(history, HISTORY_MAGIC);
    free(history->fine.samples);
    free(history->coarse.samples);
    pthread_mutex_destroy(&history->lock);
    FREE_OBJ(history);
}

static void set_times(struct history_sample *sample, const struct times *times) {
    sample->measured = times->count;
    sample->mean = times->count > 0 ? times->sum / times->count : 0;
    sample->p50 = times_quantile(times, 0.5);
    sample->p90 = times_quantile(times, 0.9);
    sample->p99 = times_quantile(times, 0.99);
}

static void ring_put(struct history_ring *ring, const struct history_sample *sample) {
    ring->samples[ring->next] = *sample;
    ring->next = (ring->next + 1) % ring->size;
    if (ring->count < ring->size)
        ring->count++;
}

static void sum_up(struct history_sample *sum, const struct history_sample *sample) {
    sum->at = sample->at;
    sum->lasted += sample->lasted;
    sum->requests += sample->requests;
#define COUNTED(name, counter, help) sum->name += sample->name;
#define LEVEL(name, counter, help)   sum->name = sample->name;
#include "admin/history.def"
#undef COUNTED
#undef LEVEL
}

void history_add(struct history *history, const struct history_sample *sample,
                 const struct times *times) {
    CHECK_OBJ(history, HISTORY_MAGIC);
    struct history_sample whole = *sample;
    set_times(&whole, times);
    pthread_mutex_lock(&history->lock);
    ring_put(&history->fine, &whole);
    sum_up(&history->sum, &whole);
    times_sum(&history->sum_times, times);
    if (++history->gathered == HISTORY_GATHERED) {
        set_times(&history->sum, &history->sum_times);
        ring_put(&history->coarse, &history->sum);
        history->gathered = 0;
        history->sum = (struct history_sample){0};
        history->sum_times = (struct times){0};
    }
    pthread_mutex_unlock(&history->lock);
}

size_t history_read(struct history *history, bool coarse, uint64_t after,
                    struct history_sample *samples, size_t most) {
    CHECK_OBJ(history, HISTORY_MAGIC);
    const struct history_ring *ring = coarse ? &history->coarse : &history->fine;
    size_t count = 0;
    pthread_mutex_lock(&history->lock);
    size_t wanted = ring->count < most ? ring->count : most;
    for (size_t i = wanted; i > 0; i--) {
        const struct history_sample *sample =
            &ring->samples[(ring->next + ring->size - i) % ring->size];
        if (sample->at > after)
            samples[count++] = *sample;
    }
    pthread_mutex_unlock(&history->lock);
    return count;
}

/* All values of a sample are numbers of 64 bits, in the order of these names. */
static const char *const history_names[] = {
    "at", "lasted", "requests", "measured", "mean", "p50", "p90", "p99",
#define COUNTED(name, counter, help) #name,
#define LEVEL(name, counter, help)   #name,
#include "admin/history.def"
#undef COUNTED
#undef LEVEL
};

enum { HISTORY_VALUES = sizeof history_names / sizeof *history_names };

_Static_assert(sizeof(struct history_sample) == HISTORY_VALUES * sizeof(uint64_t),
               "a name for each value of a sample");

static json_t *sample_to_json(const struct history_sample *sample) {
    uint64_t values[HISTORY_VALUES];
    json_t *array = json_array();
    memcpy(values, sample, sizeof values);
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        json_array_append_new(array, json_integer((json_int_t)values[i]));
    return array;
}

static json_t *history_to_json(struct history *history, bool coarse, uint64_t after) {
    struct history_sample *samples = xcalloc(HISTORY_MOST, sizeof *samples);
    json_t *array = json_array();
    size_t count = history_read(history, coarse, after, samples, HISTORY_MOST);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, sample_to_json(&samples[i]));
    free(samples);
    return array;
}

void history_page_make(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request) {
    uint64_t after = 0;
    const char *given = page_argument(request, "after"), *long_time = page_argument(request, "day");
    bool coarse = long_time != NULL && strcmp(long_time, "yes") == 0;
    if (given != NULL)
        slice_to_uint64(slice_from(given), &after);
    if (calls->history == NULL) {
        page_error(page, 404, "there is no history");
        return;
    }
    json_t *names = json_array();
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        json_array_append_new(names, json_string(history_names[i]));
    uint64_t step = calls->history_step * (coarse ? HISTORY_GATHERED : 1);
    page_json_dense(page, json_pack("{s:I, s:I, s:o, s:o}", "step", (json_int_t)step, "now",
                                    (json_int_t)clocks_milliseconds(CLOCK_REALTIME), "names", names,
                                    "samples", history_to_json(calls->history, coarse, after)));
}

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
