#include "admin/history.h"

#include "base/assert.h"
#include "base/clocks.h"

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
