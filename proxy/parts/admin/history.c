#include "admin/history.h"

#include "base/assert.h"

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
