#include "spans/exporter.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/threads.h"
#include "config.h"
#include "spans/collector.h"
#include "spans/otlp.h"
#include "spans/settings.h"

#include <stdio.h>

/* In milliseconds; COMPLAINT: in seconds. */
enum { GATHER = 1000, LAST_POST = 1000, TRIES = 5, COMPLAINT = 60 };
enum { PAUSE_FIRST = 1000, PAUSE_MOST = 8000 }; /* milliseconds between tries */

struct span_exporter {
    unsigned magic;
#define SPAN_EXPORTER_MAGIC 0x59a4e490u
    struct thread_clock clock;
    pthread_mutex_t lock;      /* for what follows, up to `started` */
    struct settings *settings; /* referenced; NULL: never configured */
    struct list_link waiting;
    unsigned waiting_count;
    bool started;
    atomic_bool hurry; /* the post that is under way ends: somebody waits for the thread */
    _Atomic uint64_t exported, dropped, rejected, posts_failed;
    /* The thread's. */
    struct collector_reply reply; /* to the last post */
    time_t told_rejected;         /* when the log last said that spans were rejected; 0: never */
    struct collector *collector;
    bool failing;  /* the log has said so */
    time_t warned; /* when it last said so; 0: never */
};

/* Telling. */

static void exporter_fails(struct span_exporter *exporter, const char *collector,
                           const char *reason, bool again) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (exporter->failing || (exporter->warned != 0 && now.tv_sec < exporter->warned + COMPLAINT))
        return;
    exporter->failing = true;
    exporter->warned = now.tv_sec;
    const char *fate =
        again ? "they are posted again, and are dropped after five tries" : "they are dropped";
    log_warn("cannot post spans to the collector %s: %s; %s (retort_spans_dropped_total counts "
             "them): check that it runs and takes OTLP over HTTP in JSON",
             collector, reason, fate);
}

static void exporter_works(struct span_exporter *exporter, const char *collector) {
    if (exporter->failing)
        log_info("posting spans to the collector %s works again", collector);
    exporter->failing = false;
}

/* Posting. */

static enum collector_answer exporter_try(struct span_exporter *exporter,
                                          struct collector_request *request) {
    char error[COLLECTOR_ERROR];
    enum collector_answer answer =
        collector_post(exporter->collector, request, &exporter->reply, error);
    if (answer == COLLECTOR_TOOK) {
        exporter_works(exporter, request->tracing->collector);
        return answer;
    }
    if (answer == COLLECTOR_LEFT)
        return answer;
    atomic_fetch_add(&exporter->posts_failed, 1);
    exporter_fails(exporter, request->tracing->collector, error, answer == COLLECTOR_AGAIN);
    return answer;
}

static bool exporter_send(struct span_exporter *exporter, struct collector_request *request) {
    enum collector_answer answer = exporter_try(exporter, request);
    for (unsigned tries = 1; answer == COLLECTOR_AGAIN && tries < TRIES; tries++) {
        if (!thread_clock_sleep(&exporter->clock,
                                (unsigned)backoff_after(PAUSE_FIRST, PAUSE_MOST, tries)))
            break;
        answer = exporter_try(exporter, request);
    }
    return answer == COLLECTOR_TOOK;
}

/* A collector may take a post and yet reject some of its spans. Returns how many of them. */
static uint64_t exporter_read_reply(struct span_exporter *exporter, const char *collector,
                                    unsigned sent) {
    struct timespec now;
    char why[OTLP_ANSWER_WHY];
    uint64_t rejected =
        otlp_answer_rejected(slice_make(exporter->reply.body, exporter->reply.length), why);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (rejected > sent) /* it can't be true */
        rejected = sent;
    if ((rejected == 0 && why[0] == '\0') ||
        (exporter->told_rejected != 0 && now.tv_sec < exporter->told_rejected + COMPLAINT))
        return rejected;
    exporter->told_rejected = now.tv_sec;
    log_warn("the collector %s rejected %llu of %u %s (retort_spans_rejected_total counts "
             "them): \"%s\"; see its log",
             collector, (unsigned long long)rejected, sent, plural((int64_t)sent, "span", "spans"),
             why);
    return rejected;
}

static unsigned count_spans(const struct list_link *sets) {
    unsigned count = 0;
    LIST_FOR_EACH (link, sets)
        count += CONTAINER_OF(link, struct span_set, link)->count;
    return count;
}

static void free_sets(struct list_link *sets) {
    LIST_FOR_EACH_SAFE (link, next, sets) {
        struct span_set *set = CONTAINER_OF(link, struct span_set, link);
        span_set_free(&set);
    }
}

static char *write_sets(const struct list_link *sets, const struct tracing_settings *tracing,
                        size_t *length) {
    char *text = NULL;
    bool first = true;
    FILE *out = open_memstream(&text, length);
    ASSERT(out != NULL);
    otlp_begin(out, tracing->service_name, PACKAGE_VERSION);
    LIST_FOR_EACH (link, sets)
        otlp_write(out, CONTAINER_OF(link, struct span_set, link), &first);
    otlp_end(out);
    ASSERT(fclose(out) == 0);
    return text;
}

static bool exporter_post_sets(struct span_exporter *exporter, const struct list_link *sets,
                               const struct settings *settings, bool last) {
    static const atomic_bool never;
    const struct tracing_settings *tracing = tracing_settings_of(settings);
    struct collector_request request = {
        .tracing = tracing,
        .timeout = last && tracing->timeout > LAST_POST ? LAST_POST : tracing->timeout,
        .stop = last ? &never : &exporter->hurry,
    };
    char *text = write_sets(sets, tracing, &request.length);
    request.body = text;
    bool sent = exporter_send(exporter, &request);
    free(text);
    return sent;
}

/* The thread. */

static void take_sets(struct span_exporter *exporter, struct list_link *sets) {
    struct list_link *link;
    for (unsigned i = 0; i < SPAN_BATCH && (link = list_first(&exporter->waiting)) != NULL; i++) {
        list_remove(link);
        list_append(sets, link);
        exporter->waiting_count--;
    }
}

/* Posts a batch, or drops it. */
static void exporter_round(struct span_exporter *exporter, bool last) {
    struct list_link sets;
    list_init(&sets);
    pthread_mutex_lock(&exporter->lock);
    take_sets(exporter, &sets);
    struct settings *settings = settings_reference(exporter->settings);
    pthread_mutex_unlock(&exporter->lock);
    const char *collector = tracing_settings_of(settings)->collector;
    bool sent = !list_empty(&sets) && collector != NULL &&
                exporter_post_sets(exporter, &sets, settings, last);
    unsigned spans = count_spans(&sets);
    uint64_t rejected = sent ? exporter_read_reply(exporter, collector, spans) : 0;
    atomic_fetch_add(&exporter->rejected, rejected);
    atomic_fetch_add(sent ? &exporter->exported : &exporter->dropped, spans - rejected);
    free_sets(&sets);
    settings_release(&settings);
}

/* A batch is posted at once; what is less waits for more, for GATHER. Under the lock. */
static uint64_t exporter_due(const struct span_exporter *exporter) {
    if (exporter->waiting_count >= SPAN_BATCH)
        return 0;
    return exporter->waiting_count > 0 ? threads_in(GATHER) : THREADS_NEVER;
}

static uint64_t exporter_tick(void *arg) {
    struct span_exporter *exporter;
    CAST_OBJ(exporter, arg, SPAN_EXPORTER_MAGIC);
    exporter_round(exporter, false);
    pthread_mutex_lock(&exporter->lock);
    uint64_t due = exporter_due(exporter);
    pthread_mutex_unlock(&exporter->lock);
    return due;
}

struct span_exporter *span_exporter_new(void) {
    struct span_exporter *exporter;
    ALLOC_OBJ(exporter, SPAN_EXPORTER_MAGIC);
    pthread_mutex_init(&exporter->lock, NULL);
    thread_clock_init(&exporter->clock, exporter_tick, exporter);
    list_init(&exporter->waiting);
    return exporter;
}

/* Under the lock. */
static void exporter_start(struct span_exporter *exporter) {
    exporter->collector = collector_new();
    exporter->started = thread_clock_start(&exporter->clock, "rt-spans");
    if (exporter->started)
        return;
    collector_free(&exporter->collector);
    log_error("cannot start the thread that posts spans: nothing is traced");
}

void span_exporter_configure(struct span_exporter *exporter, struct settings *settings) {
    CHECK_OBJ(exporter, SPAN_EXPORTER_MAGIC);
    pthread_mutex_lock(&exporter->lock);
    settings_release(&exporter->settings);
    exporter->settings = settings_reference(settings);
    if (settings->traces && !exporter->started)
        exporter_start(exporter);
    pthread_mutex_unlock(&exporter->lock);
}

/* What is beyond a batch is lost at the end: nobody waits for a collector. */
void span_exporter_free(struct span_exporter **exporterp) {
    struct span_exporter *exporter = *exporterp;
    *exporterp = NULL;
    if (exporter == NULL)
        return;
    CHECK_OBJ(exporter, SPAN_EXPORTER_MAGIC);
    atomic_store(&exporter->hurry, true);
    thread_clock_end(&exporter->clock);
    if (exporter->started)
        exporter_round(exporter, true);
    collector_free(&exporter->collector);
    free_sets(&exporter->waiting);
    settings_release(&exporter->settings);
    thread_clock_release(&exporter->clock);
    pthread_mutex_destroy(&exporter->lock);
    FREE_OBJ(exporter);
}

void span_exporter_post(struct span_exporter *exporter, struct span_set **setp) {
    struct span_set *set = *setp;
    *setp = NULL;
    CHECK_OBJ(exporter, SPAN_EXPORTER_MAGIC);
    pthread_mutex_lock(&exporter->lock);
    bool taken = exporter->started &&
                 exporter->waiting_count < tracing_settings_of(exporter->settings)->queue;
    if (taken) {
        list_append(&exporter->waiting, &set->link);
        exporter->waiting_count++;
        if (exporter->waiting_count == 1 || exporter->waiting_count == SPAN_BATCH)
            thread_clock_wake(&exporter->clock, exporter_due(exporter));
    }
    pthread_mutex_unlock(&exporter->lock);
    if (taken)
        return;
    atomic_fetch_add(&exporter->dropped, set->count);
    span_set_free(&set);
}

void span_exporter_count(struct span_exporter *exporter, struct span_numbers *numbers) {
    CHECK_OBJ(exporter, SPAN_EXPORTER_MAGIC);
    pthread_mutex_lock(&exporter->lock);
    numbers->waiting = exporter->waiting_count;
    pthread_mutex_unlock(&exporter->lock);
    numbers->exported = atomic_load(&exporter->exported);
    numbers->dropped = atomic_load(&exporter->dropped);
    numbers->rejected = atomic_load(&exporter->rejected);
    numbers->posts_failed = atomic_load(&exporter->posts_failed);
}
