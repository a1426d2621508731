#include "events/stream.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/ring.h"
#include "base/threads.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

/* FRAME: the most that stands around a line. LOSS: bytes of the largest event about losses. */
enum { FRAME = 64, LOSS = 64 };

struct event_consumer {
    unsigned magic;
#define EVENT_CONSUMER_MAGIC 0xe4e4c057u
    struct event_stream *stream;
    struct event_filter *filter;
    struct ring_shared *queue; /* what waits to be read, in a ring with both sides here */
    struct ring in, out;
    uint64_t since;    /* the number of its first watch */
    uint64_t untold;   /* events that were lost since it was last told */
    uint64_t fed;      /* when it last got something; milliseconds */
    uint64_t *missing; /* by worker: what event_ring_lost said last */
    unsigned index;    /* its bit */
    int fd;            /* -1: none */
    bool paused, gone;
    void (*wake)(void *arg);
    void *arg;
};

struct event_stream {
    unsigned magic;
#define EVENT_STREAM_MAGIC 0xe4e457e4u
    struct event_demand demand;
    struct thread_clock clock;
    pthread_mutex_t lock; /* for all that follows, except the rings */
    pthread_cond_t left;  /* a consumer has */
    struct event_consumer *consumers[EVENT_CONSUMERS_MOST];
    struct event_ring **rings; /* one for each worker; NULL: nobody has ever listened */
    char line[LOG_LINE_MAX];   /* that was taken from a ring */
    struct event_numbers numbers;
    uint64_t watches;
    bool ended;
};

static uint64_t stream_on_clock(void *arg);

struct event_stream *event_stream_new(const struct event_demand *demand) {
    struct event_stream *stream;
    ALLOC_OBJ(stream, EVENT_STREAM_MAGIC);
    stream->demand = *demand;
    thread_clock_init(&stream->clock, stream_on_clock, stream);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->left, NULL);
    return stream;
}

static void free_rings(struct event_stream *stream) {
    for (unsigned i = 0; stream->rings != NULL && i < stream->demand.workers; i++)
        event_ring_free(&stream->rings[i]);
    free(stream->rings);
    stream->rings = NULL;
}

void event_stream_free(struct event_stream **streamp) {
    struct event_stream *stream = *streamp;
    *streamp = NULL;
    if (stream == NULL)
        return;
    CHECK_OBJ(stream, EVENT_STREAM_MAGIC);
    event_stream_end(stream, 0);
    ASSERT(stream->numbers.consumers == 0);
    free_rings(stream);
    thread_clock_release(&stream->clock);
    pthread_cond_destroy(&stream->left);
    pthread_mutex_destroy(&stream->lock);
    FREE_OBJ(stream);
}

/* Consumers' queues, under the lock. */

static void consumer_wake(struct event_consumer *consumer) {
    if (!consumer->paused)
        return;
    consumer->paused = false;
    consumer->wake(consumer->arg);
}

static void consumer_put(struct event_consumer *consumer, struct slice text, uint64_t now) {
    ASSERT(ring_room(&consumer->out) >= text.length);
    ring_write(&consumer->out, text.base, text.length);
    ring_publish(&consumer->out);
    consumer->fed = now;
    consumer_wake(consumer);
}

static void consumer_lose(struct event_consumer *consumer, uint64_t events) {
    consumer->untold += events;
    consumer->stream->numbers.lost += events;
}

/* Says what was lost, once there is room for `more` behind it. */
static bool consumer_tell(struct event_consumer *consumer, size_t more, uint64_t now) {
    char text[LOSS];
    if (ring_room(&consumer->out) < more + (consumer->untold > 0 ? LOSS : 0))
        return false;
    if (consumer->untold == 0)
        return true;
    char *end = slice_put(text, SLICE("event: lost\ndata: {\"lost\":"));
    end = slice_put_number(end, (int64_t)consumer->untold);
    end = slice_put(end, SLICE("}\n\n"));
    consumer->untold = 0;
    consumer_put(consumer, slice_make(text, (size_t)(end - text)), now);
    return true;
}

static void consumer_give(struct event_consumer *consumer, const struct event_head *head,
                          struct slice line, uint64_t now) {
    char begin[FRAME];
    if (!consumer_tell(consumer, line.length + FRAME, now)) {
        consumer_lose(consumer, 1);
        return;
    }
    char *end = slice_put(begin, SLICE("id: "));
    end = slice_put_hex(end, head->number);
    end = slice_put(end, SLICE("\ndata: "));
    consumer_put(consumer, slice_make(begin, (size_t)(end - begin)), now);
    consumer_put(consumer, line, now);
    consumer_put(consumer, SLICE("\n\n"), now);
    consumer->stream->numbers.sent++;
}

/* The thread, under the lock. */

static void stream_distribute(struct event_stream *stream, const struct event_head *head,
                              struct slice line, uint64_t now) {
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++) {
        struct event_consumer *consumer = stream->consumers[i];
        if (consumer != NULL && (head->consumers >> i & 1) != 0 && head->watch >= consumer->since)
            consumer_give(consumer, head, line, now);
    }
}

/* What a worker's ring had no room for stands behind what it had. */
static void stream_note_missing(struct event_stream *stream, unsigned worker) {
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++) {
        struct event_consumer *consumer = stream->consumers[i];
        if (consumer == NULL)
            continue;
        uint64_t missing = event_ring_lost(stream->rings[worker], i, consumer->since);
        if (missing > consumer->missing[worker])
            consumer_lose(consumer, missing - consumer->missing[worker]);
        consumer->missing[worker] = missing;
    }
}

/* Takes at most what the ring holds at one moment, so that a worker can't keep the thread in it. */
static void stream_drain(struct event_stream *stream, unsigned worker, uint64_t now) {
    struct event_ring *ring = stream->rings[worker];
    struct event_head head;
    size_t taken = 0;
    while (taken < stream->demand.queue && event_ring_take(ring, &head, stream->line)) {
        stream_distribute(stream, &head, slice_make(stream->line, head.length), now);
        taken += sizeof head + head.length;
    }
    stream_note_missing(stream, worker);
}

static void stream_beat(struct event_stream *stream, uint64_t now) {
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++) {
        struct event_consumer *consumer = stream->consumers[i];
        if (consumer == NULL)
            continue;
        if (consumer->untold > 0)
            consumer_tell(consumer, 0, now);
        if (now - consumer->fed >= stream->demand.heartbeat &&
            ring_room(&consumer->out) >= SLICE(":\n\n").length)
            consumer_put(consumer, SLICE(":\n\n"), now);
    }
}

/* A consumer that has closed its connection reads no more, and nobody else would notice while it is
 * paused. */
static void stream_look_for_gone(struct event_stream *stream) {
    struct pollfd fds[EVENT_CONSUMERS_MOST];
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++) {
        const struct event_consumer *consumer = stream->consumers[i];
        bool watched = consumer != NULL && !consumer->gone;
        fds[i] = (struct pollfd){.fd = watched ? consumer->fd : -1, .events = POLLRDHUP};
    }
    if (poll(fds, EVENT_CONSUMERS_MOST, 0) <= 0)
        return;
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++)
        if ((fds[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
            stream->consumers[i]->gone = true;
            consumer_wake(stream->consumers[i]);
        }
}

static void stream_tick(struct event_stream *stream) {
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < stream->demand.workers; i++)
        stream_drain(stream, i, now);
    stream_beat(stream, now);
    stream_look_for_gone(stream);
}

static uint64_t stream_on_clock(void *arg) {
    struct event_stream *stream;
    CAST_OBJ(stream, arg, EVENT_STREAM_MAGIC);
    pthread_mutex_lock(&stream->lock);
    stream_tick(stream);
    uint64_t next = stream->numbers.consumers > 0 ? threads_in(EVENT_TICK) : THREADS_NEVER;
    pthread_mutex_unlock(&stream->lock);
    return next;
}

/* Coming and going, under the lock. */

static bool make_rings(struct event_stream *stream) {
    unsigned count = stream->demand.workers;
    if (stream->rings != NULL)
        return true;
    stream->rings = xcalloc(count, sizeof *stream->rings);
    bool good = true;
    for (unsigned i = 0; good && i < count; i++) {
        stream->rings[i] = event_ring_new(stream->demand.queue);
        good = stream->rings[i] != NULL;
    }
    if (!good)
        free_rings(stream);
    return good;
}

static bool run_thread(struct event_stream *stream) {
    bool running = thread_clock_start(&stream->clock, "rt-events");
    if (!running)
        log_error("the thread of the event stream can not be started: %s", strerror(errno));
    return running;
}

static void stream_publish(struct event_stream *stream) {
    struct event_watch *watch = NULL;
    stream->watches++;
    if (stream->numbers.consumers > 0)
        watch = event_watch_new(stream->watches, stream->rings);
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++)
        if (stream->consumers[i] != NULL)
            event_watch_add(watch, i, stream->consumers[i]->filter, stream->consumers[i]->since);
    stream->demand.publish(stream->demand.context, watch);
    event_watch_release(&watch);
}

static unsigned free_place(const struct event_stream *stream) {
    unsigned place = 0;
    while (stream->consumers[place] != NULL)
        place++;
    return place;
}

/* False: there is no memory. */
static bool consumer_open_queue(struct event_consumer *consumer, size_t size) {
    consumer->queue = aligned_alloc(RING_LINE, sizeof *consumer->queue + ring_memory(size));
    if (consumer->queue == NULL)
        return false;
    *consumer->queue = (struct ring_shared){0};
    ring_open(&consumer->out, consumer->queue, (char *)(consumer->queue + 1), size);
    consumer->in = consumer->out;
    return true;
}

/* NULL: there is no memory for the queue. */
static struct event_consumer *consumer_new(struct event_stream *stream,
                                           struct event_filter **filter) {
    struct event_consumer *consumer;
    ALLOC_OBJ(consumer, EVENT_CONSUMER_MAGIC);
    if (!consumer_open_queue(consumer, stream->demand.queue)) {
        FREE_OBJ(consumer);
        return NULL;
    }
    consumer->stream = stream;
    consumer->filter = *filter;
    *filter = NULL;
    consumer->index = free_place(stream);
    consumer->since = stream->watches + 1;
    consumer->fd = -1;
    consumer->missing = xcalloc(stream->demand.workers, sizeof *consumer->missing);
    return consumer;
}

static void consumer_free(struct event_consumer **consumerp) {
    struct event_consumer *consumer = *consumerp;
    *consumerp = NULL;
    event_filter_release(&consumer->filter);
    free(consumer->queue);
    free(consumer->missing);
    FREE_OBJ(consumer);
}

/* The first bytes are a comment, so that a consumer knows at once that it is connected. */
static struct event_consumer *stream_add(struct event_stream *stream,
                                         struct event_filter **filter) {
    if (stream->ended || stream->numbers.consumers >= stream->demand.consumers ||
        !make_rings(stream) || !run_thread(stream))
        return NULL;
    struct event_consumer *consumer = consumer_new(stream, filter);
    if (consumer == NULL)
        return NULL;
    stream->consumers[consumer->index] = consumer;
    stream->numbers.consumers++;
    consumer_put(consumer, SLICE("retry: 1000\n\n"), clocks_milliseconds(CLOCK_MONOTONIC));
    stream_publish(stream);
    thread_clock_wake(&stream->clock, 0);
    return consumer;
}

struct event_consumer *event_stream_join(struct event_stream *stream,
                                         struct event_filter **filter) {
    CHECK_OBJ(stream, EVENT_STREAM_MAGIC);
    pthread_mutex_lock(&stream->lock);
    struct event_consumer *consumer = stream_add(stream, filter);
    if (consumer == NULL)
        stream->numbers.refused++;
    pthread_mutex_unlock(&stream->lock);
    event_filter_release(filter);
    if (consumer != NULL)
        stream->demand.await(stream->demand.context);
    return consumer;
}

void event_consumer_leave(struct event_consumer **consumerp) {
    struct event_consumer *consumer = *consumerp;
    *consumerp = NULL;
    CHECK_OBJ(consumer, EVENT_CONSUMER_MAGIC);
    struct event_stream *stream = consumer->stream;
    pthread_mutex_lock(&stream->lock);
    stream->consumers[consumer->index] = NULL;
    stream->numbers.consumers--;
    stream_publish(stream);
    pthread_cond_broadcast(&stream->left);
    pthread_mutex_unlock(&stream->lock);
    consumer_free(&consumer);
}

/* Reading. */

void event_consumer_bind(struct event_consumer *consumer, int fd, void (*wake)(void *arg),
                         void *arg) {
    CHECK_OBJ(consumer, EVENT_CONSUMER_MAGIC);
    pthread_mutex_lock(&consumer->stream->lock);
    consumer->fd = fd;
    consumer->wake = wake;
    consumer->arg = arg;
    pthread_mutex_unlock(&consumer->stream->lock);
}

static size_t consumer_take(struct event_consumer *consumer, char *bytes, size_t most) {
    size_t waiting = ring_waiting(&consumer->in), length = waiting < most ? waiting : most;
    ring_read(&consumer->in, bytes, length);
    ring_release(&consumer->in);
    return length;
}

ssize_t event_consumer_read(struct event_consumer *consumer, char *bytes, size_t most,
                            void (*pause)(void *arg)) {
    CHECK_OBJ(consumer, EVENT_CONSUMER_MAGIC);
    struct event_stream *stream = consumer->stream;
    pthread_mutex_lock(&stream->lock);
    ssize_t got = consumer->gone ? -1 : (ssize_t)consumer_take(consumer, bytes, most);
    if (got == 0 && stream->ended) {
        got = -1;
    } else if (got == 0) {
        consumer->paused = true;
        pause(consumer->arg);
    }
    pthread_mutex_unlock(&stream->lock);
    return got;
}

void event_stream_numbers(struct event_stream *stream, struct event_numbers *numbers) {
    CHECK_OBJ(stream, EVENT_STREAM_MAGIC);
    pthread_mutex_lock(&stream->lock);
    *numbers = stream->numbers;
    pthread_mutex_unlock(&stream->lock);
}

/* The end. */

static void await_consumers(struct event_stream *stream, unsigned patience) {
    uint64_t until = threads_in(patience);
    while (stream->numbers.consumers > 0 && threads_wait(&stream->left, &stream->lock, until))
        continue;
}

void event_stream_end(struct event_stream *stream, unsigned patience) {
    CHECK_OBJ(stream, EVENT_STREAM_MAGIC);
    pthread_mutex_lock(&stream->lock);
    bool was_running = !stream->ended && stream->rings != NULL;
    stream->ended = true;
    pthread_mutex_unlock(&stream->lock);
    thread_clock_end(&stream->clock);
    pthread_mutex_lock(&stream->lock);
    if (was_running)
        stream_tick(stream);
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++)
        if (stream->consumers[i] != NULL)
            consumer_wake(stream->consumers[i]);
    await_consumers(stream, patience);
    pthread_mutex_unlock(&stream->lock);
}
