#include "transaction/access_log.h"

#include "base/assert.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* FLUSH_AFTER: milliseconds. */
enum { GATHER = 65536, FLUSH_AFTER = 200 };

struct access_log {
    int fd;
    const char *path; /* the settings' */
    uint64_t *lost;   /* the worker's counter of lines */
    bool failing;     /* the last write failed or was incomplete */
    enum access_log_format format;
    struct access_line_time time;
    size_t length;
    char bytes[GATHER + ACCESS_LINE_MAX];
};

struct access_logs {
    unsigned magic;
#define ACCESS_LOGS_MAGIC 0xacce5510u
    struct loop *loop;
    struct timer timer;
    bool armed;
    size_t count;
    struct access_log *logs;
};

static void access_log_tell(struct access_log *log, bool failing) {
    if (failing && !log->failing)
        log_warn(
            "cannot write the access log %s: %s; lines are lost until this works again "
            "(retort_access_log_lines_lost_total counts them): check the free space of its disk",
            log->path, strerror(errno));
    else if (!failing && log->failing)
        log_info("writing the access log %s works again", log->path);
    log->failing = failing;
}

/* A full disk loses log lines, not requests. After a line that was written in part, the next
 * write begins with the rest of that line. */
static void lose(struct access_log *log, size_t at) {
    bool torn = at > 0 ? log->bytes[at - 1] != '\n' : log->bytes[0] == '\n';
    for (size_t i = at; i < log->length; i++)
        *log->lost += i > 0 && log->bytes[i] == '\n';
    log->bytes[0] = '\n';
    log->length = torn;
}

static void flush(struct access_log *log) {
    size_t at = 0;
    if (log->length == 0)
        return;
    while (at < log->length) {
        ssize_t put = write(log->fd, log->bytes + at, log->length - at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            break;
        at += (size_t)put;
    }
    access_log_tell(log, at < log->length);
    if (at < log->length)
        lose(log, at);
    else
        log->length = 0;
}

void access_logs_flush(struct access_logs *logs) {
    for (size_t i = 0; i < logs->count; i++)
        flush(&logs->logs[i]);
}

static void access_log_on_timer(struct timer *timer) {
    struct access_logs *logs = CONTAINER_OF(timer, struct access_logs, timer);
    CHECK_OBJ(logs, ACCESS_LOGS_MAGIC);
    logs->armed = false;
    access_logs_flush(logs);
}

struct access_logs *access_logs_open(struct net_context *net, const struct settings *settings) {
    struct access_logs *logs;
    ALLOC_OBJ(logs, ACCESS_LOGS_MAGIC);
    logs->loop = net->loop;
    timer_init(&logs->timer, access_log_on_timer);
    logs->logs = xcalloc(settings->access_log_count + 1, sizeof *logs->logs);
    for (size_t i = 0; i < settings->access_log_count; i++) {
        const struct access_log_settings *wanted = &settings->access_logs[i];
        int fd = open(wanted->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
        if (fd < 0) {
            log_error("cannot open the access log %s: %s; its lines are lost until a reload can "
                      "open it: create its directory, and let retort's user write to it",
                      wanted->path, strerror(errno));
            continue;
        }
        struct access_log *log = &logs->logs[logs->count++];
        log->fd = fd;
        log->path = wanted->path;
        log->lost = &net->counters.access_log_lines_lost;
        log->format = wanted->format;
    }
    return logs;
}

void access_logs_close(struct access_logs **logsp) {
    struct access_logs *logs = *logsp;
    *logsp = NULL;
    if (logs == NULL)
        return;
    CHECK_OBJ(logs, ACCESS_LOGS_MAGIC);
    access_logs_flush(logs);
    timer_cancel(&logs->loop->timers, &logs->timer);
    for (size_t i = 0; i < logs->count; i++)
        close(logs->logs[i].fd);
    free(logs->logs);
    FREE_OBJ(logs);
}

static void access_log_write_line(struct access_log *log, const struct access_entry *entry) {
    log->length += access_line_write(log->bytes + log->length, log->format, entry, &log->time);
    if (log->length >= GATHER)
        flush(log);
}

bool access_logs_wanted(const struct access_logs *logs) {
    return logs->count > 0;
}

void access_logs_write(struct access_logs *logs, const struct access_entry *entry) {
    CHECK_OBJ(logs, ACCESS_LOGS_MAGIC);
    for (size_t i = 0; i < logs->count; i++)
        access_log_write_line(&logs->logs[i], entry);
    if (logs->armed || logs->count == 0)
        return;
    logs->armed = true;
    loop_timer_after(logs->loop, &logs->timer, FLUSH_AFTER);
}
