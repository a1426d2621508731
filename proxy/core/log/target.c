#include "log/target.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/threads.h"
#include "log/channel.h"
#include "tls/client.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* COMPLAINT: seconds. MOMENT: milliseconds. */
enum { COMPLAINT = 60, MOMENT = 20 };

struct log_target {
    unsigned magic;
#define LOG_TARGET_MAGIC 0x109fa43eu
    struct log_demand demand;
    char *path;                    /* as configured */
    char digest[TLS_TRUST_DIGEST]; /* of the trust */
    struct list_link link;         /* of those that are open, or over */
    unsigned users;
    struct thread_queue queue; /* of chunks; its lock is for what follows, too, up to `told` */
    size_t waiting;            /* bytes */
    uint64_t give_up;          /* once it ends: when what is left is lost */
    time_t told;               /* when the log last said that the queue is full */
    _Atomic uint64_t lost;     /* lines */
    /* The thread's. */
    struct log_channel channel;
    struct log_frame frame;
    bool torn;     /* the last line of the file has no end */
    bool failing;  /* the log has said so */
    time_t warned; /* when it last said so; 0: never */
};

/* All targets of the process. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended, opened;
    struct list_link list; /* those that are open */
    struct list_link
        over; /* those whose threads have ended, or are about to, and wait for a join */
    bool ready;
    unsigned live;         /* threads that have work to do */
    unsigned reopening;    /* files that are yet to be opened again */
    _Atomic uint64_t lost; /* lines of targets that have ended */
} the_targets = {.lock = PTHREAD_MUTEX_INITIALIZER,
                 .ended = PTHREAD_COND_INITIALIZER,
                 .opened = PTHREAD_COND_INITIALIZER};

static bool is_log_file(const struct log_target *target) {
    return target->demand.place.kind == LOG_PLACE_FILE;
}

static size_t count_lines(const char *bytes, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += bytes[i] == '\n';
    return count;
}

/* Telling, and counting. */

static void target_lose(struct log_target *target, size_t lines) {
    atomic_fetch_add(&target->lost, lines);
}

/* Is it to be said now? A place may fail and work again many times a second. */
static bool target_begins_to_fail(struct log_target *target) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (target->failing || (target->warned != 0 && now.tv_sec < target->warned + COMPLAINT))
        return false;
    target->failing = true;
    target->warned = now.tv_sec;
    return true;
}

static void target_fails(struct log_target *target, const char *reason) {
    if (target_begins_to_fail(target))
        log_warn("cannot write the %s to %s%s%s: %s; lines wait, and are lost when %zu bytes "
                 "wait (retort_access_log_lines_lost_total counts them): check that it runs",
                 target->demand.kind, target->demand.place.host,
                 target->demand.place.port[0] != '\0' ? " port " : "", target->demand.place.port,
                 reason, target->demand.queue);
}

static void target_works(struct log_target *target) {
    if (!target->failing)
        return;
    if (is_log_file(target))
        log_info("writing the log %s works again", target->path);
    else
        log_info("writing the %s to %s works again", target->demand.kind,
                 target->demand.place.host);
    target->failing = false;
}

/* Waiting. */

/* Is it closing, and has it had its time? */
static bool target_gives_up(struct log_target *target) {
    pthread_mutex_lock(&target->queue.lock);
    bool over = target->queue.ends != 0 && threads_in(0) >= target->give_up;
    pthread_mutex_unlock(&target->queue.lock);
    return over;
}

static bool target_has_room(struct log_target *target) {
    enum log_channel_status status = log_channel_wait(&target->channel, LOG_CHANNEL_PAUSE);
    if (status != LOG_CHANNEL_GONE)
        return status == LOG_CHANNEL_READY;
    target_fails(target, log_channel_reason(&target->channel));
    log_channel_close(&target->channel);
    log_channel_pause();
    return false;
}

/* Waits until the place is there and takes bytes. False: it is time to give up. */
static bool target_await(struct log_target *target) {
    while (!target_gives_up(target)) {
        if (target->channel.fd >= 0 && target_has_room(target))
            return true;
        if (target->channel.fd >= 0 || log_channel_open(&target->channel))
            continue;
        target_fails(target, log_channel_reason(&target->channel));
        log_channel_pause();
    }
    return false;
}

/* Files. */

/* Does the file end inside a line? A process that was killed may have left it so. Another one may write
 * this moment: then the file grows. */
static bool target_finds_torn(const struct log_target *target) {
    const struct timespec moment = {.tv_nsec = MOMENT * 1000000L};
    off_t length;
    if (!log_channel_ends_torn(&target->channel, &length))
        return false;
    nanosleep(&moment, NULL);
    off_t before = length;
    return log_channel_ends_torn(&target->channel, &length) && length == before;
}

static void target_open_file(struct log_target *target) {
    if (log_channel_open(&target->channel)) {
        target->torn = target_finds_torn(target);
        target_works(target);
        return;
    }
    int reason = errno;
    if (target_begins_to_fail(target))
        log_error("cannot open the log %s: %s; its lines are lost until retort can open it "
                  "(retort_access_log_lines_lost_total counts them): create its directory, and let "
                  "retort's user write to it",
                  target->path, strerror(reason));
}

/* Writes until the file takes no more. A FIFO in its place may be full for a while. */
static size_t write_file(struct log_target *target, const char *bytes, size_t length) {
    size_t at = 0;
    while (at < length) {
        ssize_t put = log_channel_write(&target->channel, bytes + at, length - at);
        if (put > 0)
            at += (size_t)put;
        else if (put < 0 && errno == EAGAIN && !target_gives_up(target))
            log_channel_wait(&target->channel, LOG_CHANNEL_PAUSE);
        else if (put == 0 || errno != EINTR)
            break;
    }
    return at;
}

/* A full disk loses lines, not requests. After a line that was written in part, the next write
 * begins with the end of that line. */
static void target_send_file(struct log_target *target, const char *bytes, size_t length) {
    if (target->channel.fd < 0)
        target_open_file(target);
    if (target->channel.fd >= 0 && target->torn)
        target->torn = write_file(target, "\n", 1) != 1;
    size_t at = target->channel.fd < 0 || target->torn ? 0 : write_file(target, bytes, length);
    if (at == length) {
        target_works(target);
        return;
    }
    const char *reason = log_channel_reason(&target->channel);
    target->torn |= at > 0 && bytes[at - 1] != '\n';
    target_lose(target, count_lines(bytes + at, length - at));
    if (target->channel.fd >= 0 && target_begins_to_fail(target))
        log_warn("cannot write the log %s: %s; lines are lost until this works again "
                 "(retort_access_log_lines_lost_total counts them): check the free space of its "
                 "disk",
                 target->path, reason);
}

/* Lines that were handed over before are in the file that there was. */
static void target_reopen(struct log_target *target) {
    if (target->channel.fd < 0 || log_channel_is_moved(&target->channel)) {
        if (target->channel.fd >= 0)
            log_channel_close(&target->channel);
        target_open_file(target);
    }
    pthread_mutex_lock(&the_targets.lock);
    the_targets.reopening--;
    pthread_cond_broadcast(&the_targets.opened);
    pthread_mutex_unlock(&the_targets.lock);
}

/* Sending to other places. */

/* Where the line begins that the byte belongs to. */
static size_t line_start(const char *bytes, size_t at) {
    while (at > 0 && bytes[at - 1] != '\n')
        at--;
    return at;
}

/* Sends all of it to a stream. After a break the line, or the message if `whole`, that was under
 * way begins anew. Returns what could not be sent. */
static size_t target_stream(struct log_target *target, const char *bytes, size_t length,
                            bool whole) {
    size_t at = 0;
    while (at < length) {
        unsigned opened = target->channel.opened;
        if (!target_await(target))
            break;
        if (opened != target->channel.opened)
            at = whole ? 0 : line_start(bytes, at);
        ssize_t put = log_channel_write(&target->channel, bytes + at, length - at);
        if (put > 0) {
            at += (size_t)put;
            target_works(target);
        } else if (errno != EAGAIN && errno != EINTR) {
            target_fails(target, log_channel_reason(&target->channel));
            log_channel_close(&target->channel);
        }
    }
    return length - at;
}

/* One message; a place that is away loses it. */
static bool target_datagram(struct log_target *target, const char *bytes, size_t length) {
    if (target_gives_up(target))
        return false;
    while (target->channel.fd >= 0 || log_channel_open(&target->channel)) {
        struct pollfd ready = {.fd = target->channel.fd, .events = POLLOUT};
        ssize_t put = send(target->channel.fd, bytes, length, MSG_NOSIGNAL);
        if (put >= 0) {
            target_works(target);
            return true;
        }
        if (errno != EAGAIN && errno != ENOBUFS)
            break;
        if (target_gives_up(target))
            return false;
        poll(&ready, 1, LOG_CHANNEL_PAUSE);
    }
    target_fails(target, log_channel_reason(&target->channel));
    log_channel_close(&target->channel);
    return false;
}

static bool target_send_line(struct log_target *target, struct slice line) {
    char message[LOG_FRAME_COUNTED];
    switch (target->demand.place.kind) {
    case LOG_PLACE_JOURNALD:
        return target_datagram(target, message, log_frame_journald(&target->frame, message, line));
    case LOG_PLACE_SYSLOG_TCP:
    case LOG_PLACE_SYSLOG_TLS: {
        size_t length = log_frame_counted(&target->frame, message, line);
        return target_stream(target, message, length, true) == 0;
    }
    default:
        return target_datagram(target, message, log_frame_syslog(&target->frame, message, line));
    }
}

static void target_send(struct log_target *target, const char *bytes, size_t length) {
    struct slice rest = slice_make(bytes, length), line;
    switch (target->demand.place.kind) {
    case LOG_PLACE_FILE: target_send_file(target, bytes, length); return;
    case LOG_PLACE_TCP:
    case LOG_PLACE_TLS:
    case LOG_PLACE_PIPE:
    case LOG_PLACE_PROGRAM: {
        size_t left = target_stream(target, bytes, length, false);
        target_lose(target, count_lines(bytes + length - left, left));
        return;
    }
    default:
        while (slice_next_line(&rest, &line))
            if (!target_send_line(target, line))
                target_lose(target, 1);
    }
}

/* The thread. */

/* A chunk that is being sent still takes room. */
static void target_sent(struct log_target *target, struct log_chunk *chunk) {
    pthread_mutex_lock(&target->queue.lock);
    target->waiting -= chunk->length;
    pthread_mutex_unlock(&target->queue.lock);
    free(chunk);
}

static void target_free(struct log_target **targetp) {
    struct log_target *target = *targetp;
    *targetp = NULL;
    tls_client_release(&target->channel.client);
    thread_queue_release(&target->queue);
    free(target->path);
    FREE_OBJ(target);
}

static void target_main(void *arg) {
    struct log_target *target;
    struct list_link *link;
    CAST_OBJ(target, arg, LOG_TARGET_MAGIC);
    while ((link = thread_queue_take(&target->queue)) != NULL) {
        struct log_chunk *chunk = CONTAINER_OF(link, struct log_chunk, link);
        if (chunk->length > 0)
            target_send(target, chunk->bytes, chunk->length);
        else
            target_reopen(target);
        target_sent(target, chunk);
    }
    log_channel_close(&target->channel);
    atomic_fetch_add(&the_targets.lost, atomic_load(&target->lost));
    pthread_mutex_lock(&the_targets.lock);
    list_append(&the_targets.over, &target->link);
    the_targets.live--;
    pthread_cond_broadcast(&the_targets.ended);
    pthread_mutex_unlock(&the_targets.lock);
}

/* Under the lock of the targets. A thread that has said that it is over still frees what OpenSSL keeps
 * for each thread. The process must not end meanwhile, since OpenSSL then forgets where that is. */
static void targets_join(void) {
    while (the_targets.ready && !list_empty(&the_targets.over)) {
        struct log_target *target =
            CONTAINER_OF(list_first(&the_targets.over), struct log_target, link);
        CHECK_OBJ(target, LOG_TARGET_MAGIC);
        list_remove(&target->link);
        target_free(&target);
    }
}

/* The thread that opens it makes what TLS needs, and the target's uses it from then on. */
static struct tls_client *client_for(const struct log_demand *demand) {
    if (demand->place.kind != LOG_PLACE_TLS && demand->place.kind != LOG_PLACE_SYSLOG_TLS)
        return NULL;
    return tls_client_new(demand->trust, slice_from(demand->place.host));
}

static struct log_target *target_new(const struct log_demand *demand) {
    struct log_target *target;
    ALLOC_OBJ(target, LOG_TARGET_MAGIC);
    target->demand = *demand;
    target->path = xstrdup(demand->path);
    target->demand.path = target->path;
    target->demand.trust = NULL;
    target->channel = (struct log_channel){
        .place = demand->place, .path = target->path, .client = client_for(demand), .fd = -1};
    memcpy(target->digest, demand->trust->digest, sizeof target->digest);
    target->frame = (struct log_frame){
        .facility = demand->facility, .severity = demand->severity, .kind = demand->kind};
    log_frame_init(&target->frame);
    thread_queue_init(&target->queue, 1, target_main, target, "rt-log");
    list_init(&target->link);
    return target;
}

/* The path says the place; what the section says besides must be the same too. */
static bool has_same_demand(const struct log_target *target, const struct log_demand *b) {
    const struct log_demand *a = &target->demand;
    return strcmp(a->path, b->path) == 0 && a->queue == b->queue && a->facility == b->facility &&
           a->severity == b->severity && strcmp(a->kind, b->kind) == 0 &&
           strcmp(target->digest, b->trust->digest) == 0;
}

static struct log_target *find_target(const struct log_demand *demand) {
    if (!the_targets.ready) {
        list_init(&the_targets.list);
        list_init(&the_targets.over);
    }
    the_targets.ready = true;
    LIST_FOR_EACH (link, &the_targets.list) {
        struct log_target *target = CONTAINER_OF(link, struct log_target, link);
        if (has_same_demand(target, demand))
            return target;
    }
    return NULL;
}

struct log_chunk *log_chunk_new(size_t capacity) {
    struct log_chunk *chunk = xmalloc(sizeof *chunk + capacity);
    *chunk = (struct log_chunk){.length = 0};
    return chunk;
}

/* Under the lock. */
static void target_append(struct log_target *target, struct log_chunk *chunk) {
    target->waiting += chunk->length;
    thread_queue_add(&target->queue, &chunk->link);
}

/* Under the lock. */
static bool ends_with_mark(const struct log_target *target) {
    const struct list_link *jobs = &target->queue.jobs;
    return !list_empty(jobs) && CONTAINER_OF(jobs->prev, struct log_chunk, link)->length == 0;
}

/* Under the lock of the targets. One mark stands for all that ask before further lines come. */
static void target_ask_to_reopen(struct log_target *target) {
    pthread_mutex_lock(&target->queue.lock);
    if (!ends_with_mark(target)) {
        the_targets.reopening++;
        target_append(target, log_chunk_new(0));
    }
    pthread_mutex_unlock(&target->queue.lock);
}

/* Under the lock of the targets. NULL: there can be no thread. */
static struct log_target *target_begin(const struct log_demand *demand) {
    struct log_target *target = target_new(demand);
    if (thread_queue_staff(&target->queue)) {
        list_append(&the_targets.list, &target->link);
        the_targets.live++;
        return target;
    }
    log_error("cannot start a thread for the %s %s: its lines are lost until a reload",
              demand->kind, demand->path);
    target_free(&target);
    return NULL;
}

struct log_target *log_target_open(const struct log_demand *demand) {
    pthread_mutex_lock(&the_targets.lock);
    targets_join();
    struct log_target *target = find_target(demand);
    if (target == NULL)
        target = target_begin(demand);
    if (target != NULL) {
        target->users++;
        if (is_log_file(target))
            target_ask_to_reopen(target);
    }
    pthread_mutex_unlock(&the_targets.lock);
    return target;
}

void log_targets_await(void) {
    uint64_t end = threads_in(LOG_TARGET_PATIENCE * 1000);
    pthread_mutex_lock(&the_targets.lock);
    while (the_targets.reopening > 0 && threads_wait(&the_targets.opened, &the_targets.lock, end)) {
    }
    pthread_mutex_unlock(&the_targets.lock);
}

/* Under the lock. */
static bool is_to_be_told(struct log_target *target) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (target->told != 0 && now.tv_sec < target->told + COMPLAINT)
        return false;
    target->told = now.tv_sec;
    return true;
}

/* What waits takes only the memory of its lines. */
static struct log_chunk *shrink(struct log_chunk *chunk) {
    struct log_chunk *smaller = realloc(chunk, sizeof *chunk + chunk->length);
    return smaller != NULL ? smaller : chunk;
}

bool log_target_post(struct log_target *target, struct log_chunk **chunkp) {
    CHECK_OBJ(target, LOG_TARGET_MAGIC);
    size_t length = (*chunkp)->length;
    ASSERT(length > 0);
    pthread_mutex_lock(&target->queue.lock);
    bool fits = target->waiting == 0 || target->waiting + length <= target->demand.queue;
    bool tell = !fits && is_to_be_told(target);
    if (fits) {
        target_append(target, shrink(*chunkp));
        *chunkp = NULL;
    }
    pthread_mutex_unlock(&target->queue.lock);
    if (tell)
        log_warn("%s takes the lines of the %s too slowly: %zu bytes wait, and further lines are "
                 "lost (retort_access_log_lines_lost_total counts them)",
                 target->path, target->demand.kind, target->demand.queue);
    return fits;
}

uint64_t log_target_take_lost(struct log_target *target) {
    CHECK_OBJ(target, LOG_TARGET_MAGIC);
    return atomic_exchange(&target->lost, 0) + atomic_exchange(&the_targets.lost, 0);
}

static void target_end(struct log_target *target) {
    pthread_mutex_lock(&target->queue.lock);
    target->give_up = threads_in(LOG_TARGET_PATIENCE * 1000);
    pthread_mutex_unlock(&target->queue.lock);
    thread_queue_end(&target->queue, THREADS_DRAIN);
}

void log_target_close(struct log_target **targetp) {
    struct log_target *target = *targetp;
    *targetp = NULL;
    if (target == NULL)
        return;
    CHECK_OBJ(target, LOG_TARGET_MAGIC);
    pthread_mutex_lock(&the_targets.lock);
    bool last = --target->users == 0;
    if (last)
        list_remove(&target->link);
    pthread_mutex_unlock(&the_targets.lock);
    if (last)
        target_end(target);
}

void log_targets_finish(void) {
    uint64_t lost, end = threads_in(3 * LOG_TARGET_PATIENCE * 1000);
    pthread_mutex_lock(&the_targets.lock);
    while (the_targets.ready && !list_empty(&the_targets.list)) {
        struct list_link *link = list_first(&the_targets.list);
        list_remove(link);
        target_end(CONTAINER_OF(link, struct log_target, link));
    }
    while (the_targets.live > 0 && threads_wait(&the_targets.ended, &the_targets.lock, end)) {
    }
    unsigned late = the_targets.live;
    targets_join();
    pthread_mutex_unlock(&the_targets.lock);
    if (late > 0)
        log_warn("%u logs did not take their last lines within %u seconds: these lines are lost",
                 late, 3 * LOG_TARGET_PATIENCE);
    if ((lost = atomic_load(&the_targets.lost)) > 0)
        log_warn("%llu lines of logs could not be written before the end: they are lost",
                 (unsigned long long)lost);
}
