/*
 * A service that breaks the promise that its setting Fault names; without one it makes text upper
 * case and keeps them all. retort-service-test has to find each fault.
 */
#include "base/assert.h"
#include "base/spool.h"
#include "service/adapted_head.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BAD_BUFFER = 64 * 1024 };

enum bad_fault {
    BAD_NONE,
    BAD_LEAK,
    BAD_START_LEAK,
    BAD_START_THREAD,
    BAD_START_SOCKET,
    BAD_FINGERPRINT,
    BAD_DESCRIPTOR,
    BAD_LONG,
    BAD_SHORT,
    BAD_LENGTH_LATER,
    BAD_BY_PIECES,
    BAD_BY_PREVIEW,
    BAD_STATIC,
    BAD_DANGLING,
    BAD_OVERREAD,
    BAD_OVERWRITE,
    BAD_TOOK,
    BAD_GOT,
    BAD_LOOP,
    BAD_CRASH,
    BAD_EXIT,
    BAD_NEVER,
    BAD_ENDLESS,
    BAD_HOLD,
    BAD_PAST_DEADLINE,
    BAD_CLOSED,
    BAD_SKIP_BODY,
    BAD_SKIP_HEAD,
    BAD_LATE_HEAD,
    BAD_HEAP_HEAD,
    BAD_SPLIT_HEAD,
    BAD_FRAMING,
    BAD_COUNTER,
    BAD_MEMBER,
    BAD_REQUEST,
    BAD_VERDICT,
    BAD_FLOW,
    BAD_ANSWER,
    BAD_LOSES,
    BAD_UNABLE,
    BAD_UNWRITTEN,
    BAD_FREED,
    BAD_WATCH,
    BAD_WATCH_CLOSED,
    BAD_DEAF,
    BAD_ALSO,
    BAD_ALSO_ALONE,
    BAD_ADDRESS,
    BAD_ADDRESSES,
    BAD_ID,
    BAD_TIMER,
    BAD_SPINS,
    BAD_KEEPS_SOON,
    BAD_KEEPS_PART,
    BAD_KEEPS_LATE,
    BAD_KEEPS_LENGTH,
    BAD_EMPTY,
};

struct bad_settings {
    uint64_t fault;
};

static const struct service_option bad_options[] = {
    {"Fault", SERVICE_OPTION_CHOICE, offsetof(struct bad_settings, fault), "none", 0, 0,
     "none|leak|start_leak|start_thread|start_socket|fingerprint|descriptor|long|short|length_"
     "later|"
     "by_pieces|by_preview|static|dangling|overread|overwrite|took|got|loop|crash|exit|never|"
     "endless|hold|past_deadline|closed|skip_body|skip_head|late_head|heap_head|split_head|framing|"
     "counter|member|request|verdict|flow|answer|loses|unable|unwritten|freed|watch|"
     "watch_closed|deaf|also|also_alone|address|addresses|id|timer|spins|keeps_"
     "soon|keeps_part|keeps_late|keeps_length|empty",
     "the promise that is broken"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

static const char *const bad_counters[] = {"SEEN", NULL};

struct bad_service {
    const struct bad_settings *settings;
    const struct service_host *host;
    int pipe[2]; /* -1: not open */
};

struct bad {
    unsigned magic;
#define BAD_MAGIC 0x0bad0badu
    enum bad_fault fault;
    struct service_exchange *exchange;
    struct spool out;
    struct slice kept; /* of a piece that is no more */
    int pipe[2];       /* 0: none */
    size_t taken;      /* of a body that it keeps */
    char value[64];
    bool finished;
};

static unsigned shared_state; /* what a service must not have */

static void *bad_thread(void *arg) {
    pause();
    return arg;
}

static void *bad_start(const void *settings, struct service_host *host, char *error,
                       size_t error_size) {
    const struct bad_settings *own = settings;
    struct bad_service *service = xcalloc(1, sizeof *service);
    pthread_t thread;
    *service = (struct bad_service){own, host, {-1, -1}};
    (void)error, (void)error_size;
    if (own->fault == BAD_START_LEAK)
        ASSERT(malloc(100) != NULL);
    if (own->fault == BAD_START_SOCKET)
        ASSERT(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    if (own->fault == BAD_FINGERPRINT)
        host->fingerprint += ++shared_state;
    if (own->fault == BAD_START_THREAD)
        ASSERT(pthread_create(&thread, NULL, bad_thread, NULL) == 0);
    return service;
}

static void bad_stop(void *arg) {
    struct bad_service *service = arg;
    for (int i = 0; i < 2; i++)
        if (service->pipe[i] >= 0)
            close(service->pipe[i]);
    free(service);
}

/* Without a fault, it reads from a pipe what it has written there. */
static void bad_timer(void *arg) {
    struct bad_service *service = arg;
    enum bad_fault fault = (enum bad_fault)service->settings->fault;
    if (fault == BAD_TIMER)
        *(volatile int *)8 = 1;
    if (service->pipe[0] < 0) {
        ASSERT(pipe2(service->pipe, O_CLOEXEC | O_NONBLOCK) == 0);
        ASSERT(service_watch(service->host, service->pipe[0], POLLIN));
    }
    ASSERT(write(service->pipe[1], "x", 1) == 1);
    if (fault == BAD_WATCH_CLOSED) {
        close(service->pipe[0]);
        service->pipe[0] = -1;
        close(service->pipe[1]);
        service->pipe[1] = -1;
    }
}

static void bad_descriptor(void *arg, int fd, short events) {
    struct bad_service *service = arg;
    char byte;
    ASSERT(fd == service->pipe[0] && (events & POLLIN));
    if (service->settings->fault != BAD_DEAF)
        ASSERT(read(fd, &byte, 1) == 1);
}

static size_t bad_resolved(void *arg, struct slice name, struct sockaddr_storage *addresses,
                           size_t count) {
    struct bad_service *service = arg;
    (void)name;
    if (service->settings->fault == BAD_ADDRESS)
        addresses[0].ss_family = AF_INET;
    return count + (service->settings->fault == BAD_ADDRESSES);
}

static void *bad_begin(void *service, struct service_exchange *exchange) {
    const struct bad_service *own = service;
    const struct bad_settings *settings = own->settings;
    struct bad *bad;
    if (exchange->point == SERVICE_RESPONSE && !adapted_head_allowed(exchange))
        return NULL;
    ALLOC_OBJ(bad, BAD_MAGIC);
    bad->fault = (enum bad_fault)settings->fault;
    bad->exchange = exchange;
    spool_init(&bad->out);
    switch (bad->fault) {
    case BAD_CRASH: *(volatile int *)8 = 1; break;
    case BAD_EXIT: exit(3);
    case BAD_COUNTER: service_count(exchange->host, 1); break;
    case BAD_MEMBER: exchange->arguments = SLICE("other"); break;
    case BAD_REQUEST: http_head_remove((struct http_head *)exchange->request, HTTP_HOST); break;
    case BAD_DESCRIPTOR: ASSERT(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0); break;
    case BAD_UNABLE: service_failed(exchange, "tired"); break;
    case BAD_WATCH: service_watch(exchange->host, 0, 1); break;
    case BAD_ID: exchange->transaction_id = SLICE("mine"); break;
    case BAD_ALSO:
        exchange->wait = (struct service_wait){0, 0, service_now() + 60000};
        exchange->also = (struct service_wait){900, 1, 0};
        break;
    case BAD_ALSO_ALONE: exchange->also = (struct service_wait){0, 1, 0}; break;
    case BAD_SPINS: /* always readable, and nobody reads it */
        ASSERT(pipe(bad->pipe) == 0 && write(bad->pipe[1], "x", 1) == 1);
        exchange->wait = (struct service_wait){bad->pipe[0], 1, service_now() + 60000};
        break;
    case BAD_CLOSED: exchange->wait = (struct service_wait){900, 1, service_now() + 60000}; break;
    default: break;
    }
    return bad;
}

/* What it does to the head. */
static void bad_head(struct bad *bad) {
    struct http_head *head = bad->exchange->head;
    struct slice name = SLICE("X-Bad"), value = SLICE("value");
    snprintf(bad->value, sizeof bad->value, "in memory of the state");
    if (bad->fault == BAD_HEAP_HEAD)
        value = slice_from(bad->value);
    if (bad->fault == BAD_SPLIT_HEAD)
        value = SLICE("one\r\nX-Forged: two");
    if (bad->fault == BAD_FRAMING)
        name = SLICE("Transfer-Encoding"), value = SLICE("chunked");
    http_head_add(head, name, value);
}

static void bad_tell_length(struct bad *bad) {
    uint64_t length = adapted_head_length(bad->exchange->head);
    if (length != SERVICE_LENGTH_UNKNOWN)
        bad->exchange->body_length = length;
    if (bad->fault == BAD_LONG)
        bad->exchange->body_length = length - 1;
    if (bad->fault == BAD_SHORT)
        bad->exchange->body_length = length + 1;
    if (bad->fault == BAD_EMPTY)
        bad->exchange->body_length = 0;
}

static enum service_verdict bad_preview(void *state, struct slice body, bool complete) {
    static const struct http_head answer = {.status = 200, .version = 11};
    struct bad *bad;
    CAST_OBJ(bad, state, BAD_MAGIC);
    (void)complete;
    switch (bad->fault) {
    case BAD_KEEPS_LENGTH:
        http_head_set(bad->exchange->head, HTTP_CONTENT_LENGTH, SLICE("5"));
        bad->exchange->keeps_body = true;
        return SERVICE_ADAPT;
    case BAD_HOLD:
    case BAD_KEEPS_SOON:
    case BAD_KEEPS_PART:
    case BAD_KEEPS_LATE:
    case BAD_SKIP_BODY: return SERVICE_HOLD;
    case BAD_VERDICT: return (enum service_verdict)7;
    case BAD_SKIP_HEAD: bad_head(bad); return SERVICE_SKIP;
    case BAD_UNABLE: return SERVICE_SKIP;
    case BAD_ANSWER: bad->exchange->answer = &answer; return SERVICE_ADAPT;
    case BAD_BY_PREVIEW: bad->value[0] = (char)('0' + body.length % 10); break;
    case BAD_PAST_DEADLINE: bad->exchange->wait = (struct service_wait){0, 0, service_now()}; break;
    default: break;
    }
    bad_head(bad);
    bad_tell_length(bad);
    adapted_head_body_changed(bad->exchange);
    return SERVICE_ADAPT;
}

static char upper_of(char byte) {
    return byte >= 'a' && byte <= 'z' ? (char)(byte - 'a' + 'A') : byte;
}

static size_t bad_push(void *state, struct slice body) {
    struct bad *bad;
    CAST_OBJ(bad, state, BAD_MAGIC);
    size_t room = bad->out.length < BAD_BUFFER ? BAD_BUFFER - bad->out.length : 0;
    size_t length = body.length < room ? body.length : room;
    volatile char sink = 0;
    switch (bad->fault) {
    case BAD_LOOP:
        for (;;)
            sink++;
    case BAD_TOOK: return body.length + 1;
    case BAD_KEEPS_SOON:
    case BAD_KEEPS_PART:
    case BAD_KEEPS_LATE: bad->taken += body.length; return body.length;
    case BAD_NEVER:
    case BAD_ALSO:
    case BAD_ALSO_ALONE:
    case BAD_PAST_DEADLINE:
    case BAD_SPINS:
    case BAD_CLOSED: return 0;
    case BAD_OVERREAD: sink = body.base[body.length]; break;
    case BAD_LATE_HEAD: http_head_add(bad->exchange->head, SLICE("X-Late"), SLICE("1")); break;
    case BAD_LENGTH_LATER: bad->exchange->body_length++; break;
    case BAD_DANGLING:
        if (bad->out.length > 0 || bad->kept.length > 0)
            return 0;
        bad->kept = body;
        return body.length;
    default: break;
    }
    (void)sink;
    for (size_t i = 0; i < length; i++) {
        char byte = upper_of(body.base[i]);
        if (bad->fault == BAD_BY_PIECES && i > 0)
            byte = body.base[i];
        if (bad->fault == BAD_STATIC)
            byte = (char)(byte + (shared_state++ % 4096 == 4095)); /* of all exchanges together */
        spool_append(&bad->out, &byte, 1);
    }
    return length;
}

static void bad_finish(void *state) {
    struct bad *bad;
    CAST_OBJ(bad, state, BAD_MAGIC);
    bad->finished = true;
}

static enum service_verdict bad_verdict(void *state) {
    struct bad *bad;
    CAST_OBJ(bad, state, BAD_MAGIC);
    if ((bad->fault == BAD_KEEPS_SOON && bad->taken > 0) ||
        (bad->fault == BAD_KEEPS_PART && bad->taken > 16) ||
        (bad->fault >= BAD_KEEPS_SOON && bad->fault <= BAD_KEEPS_LATE && bad->finished)) {
        bad_head(bad);
        bad->exchange->keeps_body = true;
        return SERVICE_ADAPT;
    }
    return bad->fault == BAD_SKIP_BODY && bad->finished ? SERVICE_SKIP : SERVICE_HOLD;
}

static enum service_flow bad_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct bad *bad;
    CAST_OBJ(bad, state, BAD_MAGIC);
    struct slice kept = bad->kept;
    switch (bad->fault) {
    case BAD_GOT: *got = capacity + 1; return SERVICE_FLOW;
    case BAD_FLOW: return (enum service_flow)9;
    case BAD_ENDLESS: memset(out, 'x', *got = capacity); return SERVICE_FLOW;
    case BAD_OVERWRITE: out[capacity] = 'x'; break;
    case BAD_LOSES: return SERVICE_PASS;
    case BAD_DANGLING:
        spool_append(&bad->out, kept.base, kept.length);
        bad->kept = SLICE("");
        break;
    case BAD_UNWRITTEN:
    case BAD_FREED: {
        volatile char *memory = malloc(64);
        if (bad->fault == BAD_FREED)
            free((void *)memory);
        bad->finished |= memory[8] == 'x';
        if (bad->fault == BAD_UNWRITTEN)
            free((void *)memory);
        break;
    }
    case BAD_BY_PREVIEW:
        if (capacity > 1 && bad->value[0] != '\0') {
            out[0] = bad->value[0];
            bad->value[0] = '\0';
            *got = 1;
            return SERVICE_FLOW;
        }
        break;
    default: break;
    }
    *got = spool_read(&bad->out, out, capacity);
    return bad->finished && bad->out.length == 0 && bad->fault != BAD_NEVER ? SERVICE_DONE
                                                                            : SERVICE_FLOW;
}

static void bad_ready(void *state) {
    (void)state;
}

static void bad_end(void *state) {
    struct bad *bad;
    CAST_OBJ(bad, state, BAD_MAGIC);
    spool_release(&bad->out);
    if (bad->pipe[0] > 0)
        close(bad->pipe[0]), close(bad->pipe[1]);
    if (bad->fault == BAD_LEAK)
        return;
    memset(bad->value, 'z', sizeof bad->value);
    FREE_OBJ(bad);
}

SERVICE_DEFINE(bad) = {
    .version = SERVICE_VERSION,
    .name = "bad",
    .description = "breaks promises",
    .points = SERVICE_REQUEST | SERVICE_RESPONSE,
    .preview_size = 16,
    .settings_size = sizeof(struct bad_settings),
    .options = bad_options,
    .counters = bad_counters,
    .start = bad_start,
    .stop = bad_stop,
#ifndef BAD_QUIET /* a module for a process has none of these */
    .timer_period = 10,
    .timer = bad_timer,
    .descriptor = bad_descriptor,
    .resolved = bad_resolved,
#endif
    .begin = bad_begin,
    .preview = bad_preview,
    .push = bad_push,
    .finish = bad_finish,
    .verdict = bad_verdict,
    .pull = bad_pull,
    .ready = bad_ready,
    .end = bad_end,
};
