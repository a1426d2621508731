/*
 * A service that uses what there is outside of exchanges, as tests ask for it: it counts the calls of
 * its timer, watches descriptors, and writes what it is told of into a file. With an exchange it does
 * what the setting Does says.
 */
#include "base/assert.h"
#include "service/service.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { TIMER, READY, REFUSED, STRANGE, LOGGED, CLOSED, RESOLVED };
static const char *const outside_counters[] = {"TIMER",  "READY",  "REFUSED",  "STRANGE",
                                               "LOGGED", "CLOSED", "RESOLVED", NULL};

enum does { DOES_NOTHING, DOES_OPT_OUT, DOES_TELL_ID, DOES_WAIT_TWO, DOES_WAIT_ALSO };
enum sorts { SORTS_NOT, SORTS_BACKWARDS, SORTS_FIRST, SORTS_NONE, SORTS_FORGED, SORTS_TOO_MANY };

struct outside_settings {
    char *pipe, *report, *name;
    uint64_t many, sleep, does, sorts;
};

static const struct service_option outside_options[] = {
    {"Pipe", SERVICE_OPTION_TEXT, offsetof(struct outside_settings, pipe), "", 0, 0, NULL,
     "a pipe with a name, from which it reads orders"},
    {"Report", SERVICE_OPTION_TEXT, offsetof(struct outside_settings, report), "", 0, 0, NULL,
     "a file for what it is told of"},
    {"Name", SERVICE_OPTION_TEXT, offsetof(struct outside_settings, name), "", 0, 0, NULL,
     "the name whose addresses it sorts"},
    {"Many", SERVICE_OPTION_NUMBER, offsetof(struct outside_settings, many), "0", 0, 5000, NULL,
     "descriptors that it watches beside that"},
    {"Sleep", SERVICE_OPTION_NUMBER, offsetof(struct outside_settings, sleep), "0", 0, 1000, NULL,
     "milliseconds that its first timer takes"},
    {"Does", SERVICE_OPTION_CHOICE, offsetof(struct outside_settings, does), "nothing", 0, 0,
     "nothing|opt-out|tell-id|wait-two|wait-also", "what it does with a message"},
    {"Sorts", SERVICE_OPTION_CHOICE, offsetof(struct outside_settings, sorts), "not", 0, 0,
     "not|backwards|first|none|forged|too-many", "what it does with addresses"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

struct outside {
    unsigned magic;
#define OUTSIDE_MAGIC 0x0075e1deu
    const struct outside_settings *settings;
    const struct service_host *host;
    int report;
    /* Of the thread of the timer. */
    bool begun;
    pthread_t thread;
    int pipe;
    unsigned many_count;
    int many[5000];
};

static void outside_strange(const struct outside *outside, const char *what) {
    service_count(outside->host, STRANGE);
    service_log(outside->host, LOG_LEVEL_ERROR, what);
}

static void *outside_start(const void *settings, struct service_host *host, char *error,
                           size_t error_size) {
    const struct outside_settings *own = settings;
    struct outside *outside;
    ALLOC_OBJ(outside, OUTSIDE_MAGIC);
    outside->settings = own;
    outside->host = host;
    outside->pipe = -1;
    outside->report = own->report[0] != '\0'
                          ? open(own->report, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)
                          : -1;
    (void)error, (void)error_size;
    if (service_watch(host, 0, POLLIN))
        outside_strange(outside, "a descriptor can be watched in start");
    return outside;
}

static void outside_stop(void *service) {
    struct outside *outside;
    CAST_OBJ(outside, service, OUTSIDE_MAGIC);
    for (unsigned i = 0; i < outside->many_count; i++)
        close(outside->many[i]);
    if (outside->pipe >= 0)
        close(outside->pipe);
    if (outside->report >= 0)
        close(outside->report);
    FREE_OBJ(outside);
}

/* ---- timer and descriptor ----------------------------------------------------------------- */

static struct outside *in_thread(void *service) {
    struct outside *outside;
    CAST_OBJ(outside, service, OUTSIDE_MAGIC);
    if (!outside->begun)
        outside->thread = pthread_self();
    else if (!pthread_equal(outside->thread, pthread_self()))
        outside_strange(outside, "timer and descriptor are called in two threads");
    return outside;
}

static void watch_many(struct outside *outside) {
    while (outside->many_count < outside->settings->many) {
        int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        ASSERT(fd >= 0);
        outside->many[outside->many_count++] = fd;
        if (!service_watch(outside->host, fd, POLLIN))
            service_count(outside->host, REFUSED);
    }
}

/* Open for writing too, so that it has no end. */
static void watch_pipe(struct outside *outside) {
    const char *path = outside->settings->pipe;
    if (path[0] == '\0')
        return;
    outside->pipe = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (outside->pipe < 0 || !service_watch(outside->host, outside->pipe, POLLIN) ||
        !service_watch(outside->host, outside->pipe, POLLIN))
        outside_strange(outside, "the pipe can't be watched");
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (service_watch(outside->host, file, POLLIN) || service_watch(outside->host, 9999, POLLIN))
        outside_strange(outside, "a file, or what is not open, can be watched");
    close(file);
}

static void outside_timer(void *service) {
    struct outside *outside = in_thread(service);
    struct timespec pause = {.tv_nsec = (long)outside->settings->sleep * 1000000};
    service_count(outside->host, TIMER);
    if (outside->begun)
        return;
    outside->begun = true;
    if (outside->settings->sleep > 0)
        nanosleep(&pause, NULL);
    watch_many(outside);
    watch_pipe(outside);
}

/* Closes the pipe and forgets to say so; another descriptor of it stays open. */
static void close_in_silence(struct outside *outside) {
    int copy = dup(outside->pipe);
    close(outside->pipe);
    outside->pipe = copy;
}

/* Each byte in the pipe is an order. */
static void outside_descriptor(void *service, int fd, short events) {
    struct outside *outside = in_thread(service);
    char order = '\0';
    if (fd != outside->pipe) {
        uint64_t value;
        if (read(fd, &value, sizeof value) != sizeof value || !(events & POLLIN))
            outside_strange(outside, "nothing is there to read");
        service_count(outside->host, READY);
        return;
    }
    if (read(fd, &order, 1) != 1)
        return;
    service_count(outside->host, READY);
    if (order == 's')
        close_in_silence(outside);
    if (order == 'w') /* once more, after that */
        service_watch(outside->host, outside->pipe, POLLIN);
    if (order == 'e')
        service_watch(outside->host, fd, 0);
}

/* ---- what it is told of ------------------------------------------------------------------- */

/* Whole lines, however many threads write. */
static void outside_report(const struct outside *outside, const char *text, int length) {
    if (outside->report >= 0)
        ASSERT(write(outside->report, text, (size_t)length) == length);
}

static void outside_logged(void *service, const struct service_log_line *line) {
    const struct outside *outside = service;
    char text[8192];
    service_count(outside->host, LOGGED);
    int length =
        snprintf(text, sizeof text,
                 "logged\t%.*s\t%.*s\t%.*s\t%.*s\t%.*s\t%u\t%llu\t%llu\t%llu\t%.*s\t%.*s\t%.*s\t%.*"
                 "s\t%.*s\t%d\n",
                 SLICE_PRINT(line->transaction_id), SLICE_PRINT(line->client_ip),
                 SLICE_PRINT(line->client_user), SLICE_PRINT(line->method), SLICE_PRINT(line->url),
                 line->status, (unsigned long long)line->request_bytes,
                 (unsigned long long)line->response_bytes, (unsigned long long)line->microseconds,
                 SLICE_PRINT(line->result), SLICE_PRINT(line->hierarchy), SLICE_PRINT(line->server),
                 SLICE_PRINT(line->error), SLICE_PRINT(line->content_type), line->aborted);
    outside_report(outside, text, length);
}

static void outside_closed(void *service, const struct service_connection *connection) {
    const struct outside *outside = service;
    char text[512];
    service_count(outside->host, CLOSED);
    int length = snprintf(
        text, sizeof text, "closed\t%.*s\t%llu\t%llu\t%llu\t%llu\t%.*s\n",
        SLICE_PRINT(connection->client_ip), (unsigned long long)connection->requests,
        (unsigned long long)connection->bytes_in, (unsigned long long)connection->bytes_out,
        (unsigned long long)connection->microseconds, SLICE_PRINT(connection->reason));
    outside_report(outside, text, length);
}

static void turn_around(struct sockaddr_storage *addresses, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        struct sockaddr_storage kept = addresses[i];
        addresses[i] = addresses[count - 1 - i];
        addresses[count - 1 - i] = kept;
    }
}

static void forge(struct sockaddr_storage *address) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    *address = (struct sockaddr_storage){.ss_family = AF_INET};
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static size_t outside_resolved(void *service, struct slice name, struct sockaddr_storage *addresses,
                               size_t count) {
    const struct outside *outside = service;
    char text[400];
    service_count(outside->host, RESOLVED);
    int length = snprintf(text, sizeof text, "resolved\t%.*s\t%zu\n", SLICE_PRINT(name), count);
    outside_report(outside, text, length);
    if (!slice_equal(name, slice_from(outside->settings->name)))
        return count;
    switch ((enum sorts)outside->settings->sorts) {
    case SORTS_NOT: return count;
    case SORTS_BACKWARDS: turn_around(addresses, count); return count;
    case SORTS_FIRST: return 1;
    case SORTS_NONE: return 0;
    case SORTS_FORGED: forge(&addresses[0]); return count;
    case SORTS_TOO_MANY: return count + 1;
    }
    return count;
}

/* ---- exchanges ---------------------------------------------------------------------------- */

struct outside_exchange {
    unsigned magic;
#define OUTSIDE_EXCHANGE_MAGIC 0x0075e1dfu
    const struct outside *outside;
    struct service_exchange *exchange;
    int events[2];
    bool ready;
};

/* Two descriptors, the second of which is ready. */
static void wait_for_two(struct outside_exchange *own, bool both) {
    struct service_exchange *exchange = own->exchange;
    own->events[0] = eventfd(both, EFD_CLOEXEC | EFD_NONBLOCK);
    own->events[1] = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    exchange->wait = (struct service_wait){own->events[0], POLLIN, service_now() + 20000};
    exchange->also = (struct service_wait){own->events[1], POLLIN, 0};
}

static void *outside_begin(void *service, struct service_exchange *exchange) {
    const struct outside *outside = service;
    enum does does = (enum does)outside->settings->does;
    struct outside_exchange *own;
    if (service_watch(outside->host, 0, POLLIN))
        outside_strange(outside, "a descriptor can be watched in an exchange");
    if (does == DOES_OPT_OUT && exchange->point == SERVICE_REQUEST)
        exchange->opt_out = http_head_find_text(exchange->head, SLICE("X-Out")) != NULL;
    if (does == DOES_NOTHING || (does == DOES_OPT_OUT && exchange->opt_out))
        return NULL;
    ALLOC_OBJ(own, OUTSIDE_EXCHANGE_MAGIC);
    own->outside = outside;
    own->exchange = exchange;
    own->events[0] = own->events[1] = -1;
    if (does == DOES_WAIT_TWO || does == DOES_WAIT_ALSO)
        wait_for_two(own, does == DOES_WAIT_TWO);
    return own;
}

static enum service_verdict outside_decide(struct outside_exchange *own) {
    struct http_head *head = own->exchange->head;
    own->exchange->keeps_body = true;
    http_head_add(head, SLICE("X-Outside"),
                  own->exchange->transaction_id.length > 0 ? own->exchange->transaction_id
                                                           : SLICE("unknown"));
    return SERVICE_ADAPT;
}

static enum service_verdict outside_preview(void *state, struct slice body, bool complete) {
    struct outside_exchange *own;
    CAST_OBJ(own, state, OUTSIDE_EXCHANGE_MAGIC);
    (void)body, (void)complete;
    return own->events[0] >= 0 ? SERVICE_HOLD : outside_decide(own);
}

static size_t outside_push(void *state, struct slice body) {
    (void)state, (void)body;
    return 0;
}

static void outside_finish(void *state) {
    (void)state;
}

static enum service_verdict outside_verdict(void *state) {
    struct outside_exchange *own;
    CAST_OBJ(own, state, OUTSIDE_EXCHANGE_MAGIC);
    return own->ready ? outside_decide(own) : SERVICE_HOLD;
}

static void outside_ready(void *state) {
    struct outside_exchange *own;
    CAST_OBJ(own, state, OUTSIDE_EXCHANGE_MAGIC);
    own->ready = true;
    service_wait_none(own->exchange);
}

static enum service_flow outside_pull(void *state, char *out, size_t capacity, size_t *got) {
    (void)state, (void)out, (void)capacity;
    *got = 0;
    return SERVICE_ABORT;
}

static void outside_end(void *state) {
    struct outside_exchange *own;
    CAST_OBJ(own, state, OUTSIDE_EXCHANGE_MAGIC);
    for (unsigned i = 0; i < 2; i++)
        if (own->events[i] >= 0)
            close(own->events[i]);
    FREE_OBJ(own);
}

SERVICE_DEFINE(outside) = {
    .version = SERVICE_VERSION,
    .name = "outside",
    .description = "what happens outside of exchanges",
    .points = SERVICE_REQUEST | SERVICE_RESPONSE,
    .preview_size = 1024,
    .settings_size = sizeof(struct outside_settings),
    .options = outside_options,
    .counters = outside_counters,
    .start = outside_start,
    .stop = outside_stop,
    .begin = outside_begin,
    .preview = outside_preview,
    .push = outside_push,
    .finish = outside_finish,
    .verdict = outside_verdict,
    .pull = outside_pull,
    .ready = outside_ready,
    .end = outside_end,
    .timer_period = 10,
    .timer = outside_timer,
    .descriptor = outside_descriptor,
    .logged = outside_logged,
    .closed = outside_closed,
    .resolved = outside_resolved,
};
