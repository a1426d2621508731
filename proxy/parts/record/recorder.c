#include "record/recorder.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/list.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TAKE_MOST = 4 << 20 };

struct waiting_record {
    struct list_link link;
    char *bytes;
    size_t length;
};

struct recorder {
    unsigned magic;
#define RECORDER_MAGIC 0x1ca94ec0u
    _Atomic unsigned references;
    uint64_t number;
    struct record_filter filter;
    struct recorder_sink sink; /* arg NULL: a client fetches */
    struct recorder_limits limits;
    bool masked;
    uint64_t until; /* microseconds, like `taken` */
    _Atomic uint64_t taken, reserved;
    _Atomic bool over;
    pthread_mutex_t lock; /* of what follows */
    struct list_link waiting;
    const char *reason;
    bool ended; /* END was taken */
    uint64_t begun, kept, dropped, passed_over;
    uint64_t forgotten; /* bytes of kept exchanges */
};

struct recorder *recorder_new(struct record_filter *filter, const struct recorder_limits *limits,
                              bool masked) {
    static _Atomic uint64_t numbers;
    struct recorder *recorder;
    ALLOC_OBJ(recorder, RECORDER_MAGIC);
    recorder->references = 1;
    recorder->number = atomic_fetch_add(&numbers, 1) + 1;
    memcpy(&recorder->filter, filter, sizeof *filter);
    memset(filter, 0, sizeof *filter);
    recorder->limits = *limits;
    recorder->masked = masked;
    recorder->taken = clocks_microseconds(CLOCK_MONOTONIC);
    recorder->until = recorder->taken + limits->seconds * 1000000;
    pthread_mutex_init(&recorder->lock, NULL);
    list_init(&recorder->waiting);
    return recorder;
}

struct recorder *recorder_for(const struct recorder_sink *sink,
                              const struct recorder_limits *limits) {
    struct record_filter none = {0};
    struct recorder *recorder = recorder_new(&none, limits, true);
    recorder->sink = *sink;
    return recorder;
}

struct recorder *recorder_reference(struct recorder *recorder) {
    CHECK_OBJ(recorder, RECORDER_MAGIC);
    atomic_fetch_add(&recorder->references, 1);
    return recorder;
}

static void free_record(struct recorder *recorder, struct waiting_record *record) {
    recorder_unreserve(recorder, record->length);
    list_remove(&record->link);
    free(record->bytes);
    free(record);
}

static struct waiting_record *first_waiting(const struct recorder *recorder) {
    return list_empty(&recorder->waiting)
               ? NULL
               : CONTAINER_OF(recorder->waiting.next, struct waiting_record, link);
}

static void forget_waiting(struct recorder *recorder) {
    struct waiting_record *record;
    for (; (record = first_waiting(recorder)) != NULL; recorder->forgotten++)
        free_record(recorder, record);
}

void recorder_release(struct recorder **recorderp) {
    struct recorder *recorder = *recorderp;
    *recorderp = NULL;
    if (recorder == NULL)
        return;
    CHECK_OBJ(recorder, RECORDER_MAGIC);
    if (atomic_fetch_sub(&recorder->references, 1) > 1)
        return;
    forget_waiting(recorder);
    record_filter_release(&recorder->filter);
    pthread_mutex_destroy(&recorder->lock);
    FREE_OBJ(recorder);
}

uint64_t recorder_number(const struct recorder *recorder) {
    return recorder->number;
}

/* Ending. */

static void recorder_end(struct recorder *recorder, const char *reason) {
    if (recorder->reason == NULL)
        recorder->reason = reason;
    atomic_store(&recorder->over, true);
}

void recorder_stop(struct recorder *recorder, const char *reason) {
    CHECK_OBJ(recorder, RECORDER_MAGIC);
    pthread_mutex_lock(&recorder->lock);
    recorder_end(recorder, reason);
    pthread_mutex_unlock(&recorder->lock);
}

static bool is_abandoned(const struct recorder *recorder, uint64_t now) {
    uint64_t taken = atomic_load(&recorder->taken);
    return recorder->sink.arg == NULL && now > taken &&
           now - taken > (uint64_t)RECORDER_PATIENCE * 1000000;
}

static void forget_abandoned(struct recorder *recorder) {
    pthread_mutex_lock(&recorder->lock);
    recorder_end(recorder, "nobody read the recording");
    forget_waiting(recorder);
    pthread_mutex_unlock(&recorder->lock);
}

bool recorder_is_over(struct recorder *recorder) {
    CHECK_OBJ(recorder, RECORDER_MAGIC);
    uint64_t now = clocks_microseconds(CLOCK_MONOTONIC);
    if (recorder->sink.arg != NULL && recorder->sink.is_over(recorder->sink.arg))
        atomic_store(&recorder->over, true);
    if (!atomic_load(&recorder->over) && now >= recorder->until)
        recorder_stop(recorder, "its time limit was reached");
    if (is_abandoned(recorder, now))
        forget_abandoned(recorder);
    return atomic_load(&recorder->over);
}

bool recorder_is_empty(const struct recorder *recorder) {
    CHECK_OBJ(recorder, RECORDER_MAGIC);
    return atomic_load(&recorder->reserved) == 0;
}

/* Taking. */

static struct waiting_record *new_record(char *bytes, size_t length) {
    struct waiting_record *record = xcalloc(1, sizeof *record);
    list_init(&record->link);
    record->bytes = bytes;
    record->length = length;
    return record;
}

/* Appends the END after all kept exchanges. */
static void append_end(struct recorder *recorder) {
    const struct recorded_exchange last = {
        .ended = slice_from(recorder->reason),
        .masked = recorder->masked,
        .kept = recorder->kept - recorder->forgotten,
        .dropped = recorder->dropped + recorder->forgotten,
        .unfinished = recorder->begun - recorder->kept - recorder->dropped - recorder->passed_over,
    };
    size_t length;
    char *bytes = recorded_exchange_write(&last, RECORDED_END, &length);
    if (bytes == NULL)
        return;
    atomic_fetch_add(&recorder->reserved, length);
    list_append(&recorder->waiting, &new_record(bytes, length)->link);
    recorder->ended = true;
}

/* Returns how many bytes of whole records fit into one piece. */
static size_t takeable(const struct recorder *recorder) {
    size_t length = 0;
    for (const struct list_link *link = recorder->waiting.next; link != &recorder->waiting;
         link = link->next) {
        const struct waiting_record *record = CONTAINER_OF(link, struct waiting_record, link);
        if (length > 0 && length + record->length > TAKE_MOST)
            break;
        length += record->length;
    }
    return length;
}

static char *take_waiting(struct recorder *recorder, size_t *length) {
    size_t most = takeable(recorder);
    char *bytes = most == 0 ? NULL : malloc(most);
    *length = 0;
    while (bytes != NULL && *length < most) {
        struct waiting_record *record = first_waiting(recorder);
        memcpy(bytes + *length, record->bytes, record->length);
        *length += record->length;
        free_record(recorder, record);
    }
    return bytes;
}

char *recorder_take(struct recorder *recorder, size_t *length) {
    CHECK_OBJ(recorder, RECORDER_MAGIC);
    atomic_store(&recorder->taken, clocks_microseconds(CLOCK_MONOTONIC));
    bool over = recorder_is_over(recorder);
    pthread_mutex_lock(&recorder->lock);
    if (over && !recorder->ended)
        append_end(recorder);
    char *bytes = take_waiting(recorder, length);
    pthread_mutex_unlock(&recorder->lock);
    return bytes;
}

/* Recording. */

size_t recorder_body_most(const struct recorder *recorder) {
    return (size_t)recorder->limits.body;
}

bool recorder_masks(const struct recorder *recorder) {
    return recorder->masked;
}

bool recorder_begin(struct recorder *recorder, struct recorded_exchange *recorded) {
    CHECK_OBJ(recorder, RECORDER_MAGIC);
    bool masked = recorder->masked, wanted = true;
    if (recorder->sink.arg != NULL)
        wanted = recorder->sink.wants(recorder->sink.arg, recorded->id, &masked);
    recorded->masked = masked;
    if (recorder->sink.arg != NULL)
        return wanted;
    if (!record_filter_fits(&recorder->filter, recorded) || !record_filter_takes(&recorder->filter))
        return false;
    pthread_mutex_lock(&recorder->lock);
    recorder->begun++;
    pthread_mutex_unlock(&recorder->lock);
    return true;
}

bool recorder_reserve(struct recorder *recorder, size_t bytes) {
    if (atomic_fetch_add(&recorder->reserved, bytes) + bytes <= recorder->limits.memory)
        return true;
    recorder_unreserve(recorder, bytes);
    return false;
}

void recorder_unreserve(struct recorder *recorder, size_t bytes) {
    atomic_fetch_sub(&recorder->reserved, bytes);
}

void recorder_drop(struct recorder *recorder, struct slice id) {
    CHECK_OBJ(recorder, RECORDER_MAGIC);
    if (recorder->sink.arg != NULL)
        recorder->sink.lose(recorder->sink.arg, id);
    pthread_mutex_lock(&recorder->lock);
    recorder->dropped++;
    pthread_mutex_unlock(&recorder->lock);
}

/* An exchange that ends after the recording counts as unfinished. */
static enum icap_keeping recorder_append(struct recorder *recorder, struct waiting_record *record) {
    pthread_mutex_lock(&recorder->lock);
    bool over = atomic_load(&recorder->over);
    if (!over) {
        list_append(&recorder->waiting, &record->link);
        if (++recorder->kept >= recorder->limits.exchanges)
            recorder_end(recorder, "the requested number of exchanges was reached");
    }
    pthread_mutex_unlock(&recorder->lock);
    if (over)
        free_record(recorder, record);
    return over ? ICAP_NOT_WANTED : ICAP_KEPT;
}

static enum icap_keeping recorder_give(struct recorder *recorder,
                                       const struct recorded_exchange *recorded) {
    const struct recorder_sink *sink = &recorder->sink;
    size_t length;
    char *bytes = recorded_exchange_write(recorded, RECORDED_EXCHANGE, &length);
    if (bytes == NULL)
        sink->lose(sink->arg, recorded->id);
    else
        sink->keep(sink->arg, recorded->id, bytes, length);
    return bytes == NULL ? ICAP_DROPPED : ICAP_KEPT;
}

enum icap_keeping recorder_keep(struct recorder *recorder,
                                const struct recorded_exchange *recorded) {
    CHECK_OBJ(recorder, RECORDER_MAGIC);
    size_t length;
    if (recorder->sink.arg != NULL)
        return recorder_give(recorder, recorded);
    if (!record_filter_fits_verdict(&recorder->filter, recorded)) {
        pthread_mutex_lock(&recorder->lock);
        recorder->passed_over++;
        pthread_mutex_unlock(&recorder->lock);
        return ICAP_NOT_WANTED;
    }
    char *bytes = recorded_exchange_write(recorded, RECORDED_EXCHANGE, &length);
    if (bytes != NULL && recorder_reserve(recorder, length))
        return recorder_append(recorder, new_record(bytes, length));
    free(bytes);
    recorder_drop(recorder, recorded->id);
    return ICAP_DROPPED;
}
