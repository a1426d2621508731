/*
 * report: says in the proxy's log, every so often, what clients were sent. It shows what a service can
 * do outside of exchanges (service/service.h): it hears of each request and connection, has a timer,
 * watches a pipe, and says which addresses of a name are used. It changes no message.
 *
 *     service report { module = "./report.so"  point = reqmod_precache
 *                      settings = { Every = "60s", Quiet = "/health", Avoid = "192.0.2.7" } }
 *     adapt all { services = report }
 *
 *     service report: 1204 requests: 1180 2xx, 3 3xx, 20 4xx, 1 5xx; 410 hits; 96 connections ended;
 *     the newest failure: 502 Bad Gateway
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "base/assert.h"
#include "service/service.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CLASSES = 6, REPORT_REPORTS = 0 };

static const char *const report_counters[] = {"REPORTS", NULL};

struct report_settings {
    uint64_t every;
    char *quiet, *pipe;
    struct service_list avoid;
};

static const struct service_option report_options[] = {
    {"Every", SERVICE_OPTION_DURATION, offsetof(struct report_settings, every), "60s", 1000,
     3600 * 1000, NULL, "time between two reports"},
    {"Quiet", SERVICE_OPTION_TEXT, offsetof(struct report_settings, quiet), "", 0, 0, NULL,
     "requests with this text in their URL are not counted"},
    {"Pipe", SERVICE_OPTION_TEXT, offsetof(struct report_settings, pipe), "", 0, 0, NULL,
     "a pipe with a name (mkfifo): whatever is written into it asks for a report"},
    {"Avoid", SERVICE_OPTION_LIST, offsetof(struct report_settings, avoid), "", 0, 0, NULL,
     "an address of servers that is not used where a name has another one"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

struct report {
    unsigned magic;
#define REPORT_MAGIC 0x4e904701u
    const struct report_settings *settings;
    const struct service_host *host;
    /* Many threads count. */
    _Atomic uint64_t classes[CLASSES], hits, ended;
    _Atomic unsigned failure; /* the newest status from 500 on; 0: there was none */
    /* Of the thread that calls timer and descriptor. */
    int64_t due;
    int pipe; /* -1: it is not open */
};

static void *report_start(const void *settings, struct service_host *host, char *error,
                          size_t error_size) {
    struct report *report;
    (void)error, (void)error_size;
    ALLOC_OBJ(report, REPORT_MAGIC);
    report->settings = settings;
    report->host = host;
    report->due = service_now() + (int64_t)report->settings->every;
    report->pipe = -1;
    return report;
}

/* By now the host watches no descriptor of it any more. */
static void report_stop(void *service) {
    struct report *report;
    CAST_OBJ(report, service, REPORT_MAGIC);
    if (report->pipe >= 0)
        close(report->pipe);
    FREE_OBJ(report);
}

/* ---- what it hears of ----------------------------------------------------------------------- */

static void report_logged(void *service, const struct service_log_line *line) {
    struct report *report = service;
    unsigned class = line->status / 100;
    atomic_fetch_add(&report->classes[class < CLASSES ? class : 0], 1);
    if (line->status >= 500)
        atomic_store(&report->failure, line->status);
    if (slice_equal(line->result, SLICE("HIT")))
        atomic_fetch_add(&report->hits, 1);
}

static void report_closed(void *service, const struct service_connection *connection) {
    struct report *report = service;
    if (connection->requests > 0)
        atomic_fetch_add(&report->ended, 1);
}

/* ---- timer and descriptor ------------------------------------------------------------------- */

static void report_write(struct report *report) {
    uint64_t counts[CLASSES], all = 0;
    char text[300], failure[100] = "";
    unsigned status = atomic_exchange(&report->failure, 0);
    if (status != 0)
        snprintf(failure, sizeof failure, "; the newest failure: %u %s", status,
                 service_status_text(status));
    for (unsigned i = 0; i < CLASSES; i++)
        all += counts[i] = atomic_exchange(&report->classes[i], 0);
    snprintf(text, sizeof text,
             "%llu requests: %llu 2xx, %llu 3xx, %llu 4xx, %llu 5xx; %llu hits; %llu connections "
             "ended%s",
             (unsigned long long)all, (unsigned long long)counts[2], (unsigned long long)counts[3],
             (unsigned long long)counts[4], (unsigned long long)counts[5],
             (unsigned long long)atomic_exchange(&report->hits, 0),
             (unsigned long long)atomic_exchange(&report->ended, 0), failure);
    service_log(report->host, LOG_LEVEL_INFO, text);
    service_count(report->host, REPORT_REPORTS);
    report->due = service_now() + (int64_t)report->settings->every;
}

/* Open for writing too, so that it does not end with whoever writes into it. */
static void report_open_pipe(struct report *report) {
    const char *path = report->settings->pipe;
    if (report->pipe >= 0 || path[0] == '\0')
        return;
    report->pipe = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (report->pipe >= 0 && !service_watch(report->host, report->pipe, POLLIN))
        service_log(report->host, LOG_LEVEL_WARN, "the pipe can't be watched");
}

static void report_timer(void *service) {
    struct report *report;
    CAST_OBJ(report, service, REPORT_MAGIC);
    report_open_pipe(report);
    if (service_now() >= report->due)
        report_write(report);
}

/* Takes all that is there, so that the host does not call again for it. */
static void report_descriptor(void *service, int fd, short events) {
    struct report *report;
    char bytes[256];
    bool any = false;
    CAST_OBJ(report, service, REPORT_MAGIC);
    (void)events;
    while (read(fd, bytes, sizeof bytes) > 0)
        any = true;
    if (any)
        report_write(report);
}

/* ---- addresses ------------------------------------------------------------------------------ */

static bool report_avoids(const struct report *report, const struct sockaddr_storage *address) {
    char text[INET6_ADDRSTRLEN] = "";
    const void *bytes = address->ss_family == AF_INET6
                            ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                            : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
    inet_ntop(address->ss_family, bytes, text, sizeof text);
    for (unsigned i = 0; i < report->settings->avoid.count; i++)
        if (strcmp(text, report->settings->avoid.items[i]) == 0)
            return true;
    return false;
}

/* The avoided ones are left out; all of them are better than none. */
static size_t report_resolved(void *service, struct slice name, struct sockaddr_storage *addresses,
                              size_t count) {
    const struct report *report = service;
    size_t kept = 0;
    (void)name;
    for (size_t i = 0; i < count; i++)
        if (!report_avoids(report, &addresses[i]))
            addresses[kept++] = addresses[i];
    return kept > 0 ? kept : count;
}

/* ---- exchanges ------------------------------------------------------------------------------ */

/* Looks at the URL of a request, and is interested in no message. */
static void *report_begin(void *service, struct service_exchange *exchange) {
    const struct report *report = service;
    const char *quiet = report->settings->quiet;
    struct slice url = exchange->request->target;
    if (quiet[0] != '\0' && memmem(url.base, url.length, quiet, strlen(quiet)) != NULL)
        exchange->opt_out = true;
    return NULL;
}

static enum service_verdict report_preview(void *state, struct slice body, bool complete) {
    (void)state, (void)body, (void)complete;
    return SERVICE_SKIP;
}

static void report_end(void *state) {
    (void)state;
}

SERVICE_DEFINE(report) = {
    .version = SERVICE_VERSION,
    .name = "report",
    .description = "reports what clients were sent",
    .points = SERVICE_REQUEST,
    .settings_size = sizeof(struct report_settings),
    .options = report_options,
    .counters = report_counters,
    .start = report_start,
    .stop = report_stop,
    .begin = report_begin,
    .preview = report_preview,
    .end = report_end,
    .timer_period = 500,
    .timer = report_timer,
    .descriptor = report_descriptor,
    .logged = report_logged,
    .closed = report_closed,
    .resolved = report_resolved,
};
