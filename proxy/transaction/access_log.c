#include "transaction/access_log.h"

#include "base/assert.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { GATHER = 32768, LINE_MAX_BYTES = 65536, FLUSH_AFTER = 200, URL_SHOWN = 2560 };

struct access_log {
    int fd;
    enum access_log_format format;
    size_t length;
    char bytes[GATHER + LINE_MAX_BYTES];
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

static void flush(struct access_log *log) {
    size_t at = 0;
    while (at < log->length) {
        ssize_t put = write(log->fd, log->bytes + at, log->length - at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            break; /* a full disk costs log lines, not requests */
        at += (size_t)put;
    }
    log->length = 0;
}

void access_logs_flush(struct access_logs *logs) {
    for (size_t i = 0; i < logs->count; i++)
        flush(&logs->logs[i]);
}

static void on_timer(struct timer *timer) {
    struct access_logs *logs = CONTAINER_OF(timer, struct access_logs, timer);
    CHECK_OBJ(logs, ACCESS_LOGS_MAGIC);
    logs->armed = false;
    access_logs_flush(logs);
}

struct access_logs *access_logs_open(struct loop *loop, const struct settings *settings) {
    struct access_logs *logs;
    ALLOC_OBJ(logs, ACCESS_LOGS_MAGIC);
    logs->loop = loop;
    timer_init(&logs->timer, on_timer);
    logs->logs = xcalloc(settings->access_log_count + 1, sizeof *logs->logs);
    for (size_t i = 0; i < settings->access_log_count; i++) {
        const struct access_log_settings *wanted = &settings->access_logs[i];
        int fd = open(wanted->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
        if (fd < 0) {
            log_error(
                "cannot open the access log %s: %s; its lines are lost until a reload finds it "
                "writable",
                wanted->path, strerror(errno));
            continue;
        }
        struct access_log *log = &logs->logs[logs->count++];
        log->fd = fd;
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

/* A line being written; what does not fit is cut. */
struct line {
    char *at, *end;
};

static void put_slice(struct line *line, struct slice text) {
    size_t room = (size_t)(line->end - line->at);
    size_t length = text.length < room ? text.length : room;
    if (length > 0)
        memcpy(line->at, text.base, length);
    line->at += length;
}

static void put_format(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_format(struct line *line, const char *format, ...) {
    va_list arguments;
    size_t room = (size_t)(line->end - line->at);
    va_start(arguments, format);
    int length = vsnprintf(line->at, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        line->at += (size_t)length < room ? (size_t)length : (room > 0 ? room - 1 : 0);
}

/* Bytes that could forge or break a line are shown as %XX; an empty text as "-". */
static void put_plain(struct line *line, struct slice text, bool keep_spaces) {
    if (text.length == 0)
        put_slice(line, SLICE("-"));
    for (size_t i = 0; i < text.length && i < URL_SHOWN; i++) {
        unsigned char c = (unsigned char)text.base[i];
        if (c > 0x20 && c < 0x7f && c != '"' && c != '\\')
            put_slice(line, slice_make(&text.base[i], 1));
        else if (c == ' ' && keep_spaces)
            put_slice(line, SLICE(" "));
        else
            put_format(line, "%%%02X", c);
    }
}

/* The length of the UTF-8 sequence at the front, 0 when it is none. */
static size_t utf8_length(struct slice text) {
    const unsigned char *bytes = (const unsigned char *)text.base;
    size_t length = bytes[0] < 0x80   ? 1
                    : bytes[0] < 0xc2 ? 0
                    : bytes[0] < 0xe0 ? 2
                    : bytes[0] < 0xf0 ? 3
                    : bytes[0] < 0xf5 ? 4
                                      : 0;
    if (length == 0 || length > text.length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    if (length == 3 &&
        ((bytes[0] == 0xe0 && bytes[1] < 0xa0) || (bytes[0] == 0xed && bytes[1] > 0x9f)))
        return 0;
    if (length == 4 &&
        ((bytes[0] == 0xf0 && bytes[1] < 0x90) || (bytes[0] == 0xf4 && bytes[1] > 0x8f)))
        return 0;
    return length;
}

static void put_json(struct line *line, struct slice text) {
    put_slice(line, SLICE("\""));
    for (size_t i = 0; i < text.length && i < URL_SHOWN;) {
        struct slice rest = slice_make(text.base + i, text.length - i);
        unsigned char c = (unsigned char)rest.base[0];
        size_t length = utf8_length(rest);
        if (length == 0) {
            put_slice(line, SLICE("\\ufffd"));
            length = 1;
        } else if (c == '"' || c == '\\') {
            put_format(line, "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            put_format(line, "\\u%04x", c);
        } else {
            put_slice(line, slice_make(rest.base, length));
        }
        i += length;
    }
    put_slice(line, SLICE("\""));
}

/* Squid's names for our results, so that its log analysers understand. */
static const char *squid_result(const struct access_entry *entry) {
    static const struct {
        const char *ours, *squids;
    } names[] = {
        {"HIT", "TCP_MEM_HIT"},
        {"STALE", "TCP_OFFLINE_HIT"},
        {"MISS", "TCP_MISS"},
        {"REVALIDATED", "TCP_REFRESH_UNMODIFIED"},
        {"REFRESHED", "TCP_REFRESH_MODIFIED"},
        {"PASS", "TCP_MISS"},
        {"TUNNEL", "TCP_TUNNEL"},
        {"SERVICE", "TCP_ADAPTED"},
        {"DENIED", "TCP_DENIED"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(entry->result, names[i].ours) == 0)
            return names[i].squids;
    return "NONE";
}

static void put_services(struct line *line, const struct access_entry *entry, bool json) {
    bool first = true;
    for (int i = 0; i < 2; i++) {
        const struct adapt_chain *chain = entry->chains[i];
        for (unsigned j = 0; chain != NULL && j < chain->at; j++) {
            const struct adapt_record *record = &chain->records[j];
            if (json) {
                put_slice(line, first ? slice_make("", 0) : SLICE(","));
                put_slice(line, SLICE("{\"service\":"));
                put_json(line, slice_from(record->service));
                put_format(line, ",\"verdict\":\"%s\",\"ms\":%u", record->verdict,
                           record->milliseconds);
                if (record->error != NULL) {
                    put_slice(line, SLICE(",\"error\":"));
                    put_json(line, slice_from(record->error));
                }
                put_slice(line, SLICE("}"));
            } else {
                put_format(line, "%s%s:%s:%u", first ? "" : ",", record->service, record->verdict,
                           record->milliseconds);
            }
            first = false;
        }
    }
    if (first && !json)
        put_slice(line, SLICE("-"));
}

static void write_squid(struct line *line, const struct access_entry *entry) {
    bool asked = entry->origin.length > 0;
    put_format(line, "%ld.%03ld %6lu ", (long)entry->time.tv_sec, entry->time.tv_nsec / 1000000,
               (unsigned long)(entry->duration / 1000));
    put_slice(line, entry->client);
    put_format(line, " %s%s/%03u %lu ", squid_result(entry), entry->aborted ? "_ABORTED" : "",
               entry->status, (unsigned long)entry->bytes);
    put_plain(line, entry->method, false);
    put_slice(line, SLICE(" "));
    put_plain(line, entry->url, false);
    put_format(line, " - %s/", asked ? "HIER_DIRECT" : "HIER_NONE");
    put_plain(line, entry->origin, false);
    put_slice(line, SLICE(" "));
    struct slice type = entry->content_type;
    const char *parameters = type.length > 0 ? memchr(type.base, ';', type.length) : NULL;
    if (parameters != NULL)
        type.length = (size_t)(parameters - type.base);
    put_plain(line, slice_trim(type), false);
    put_format(line, " %s ", entry->id);
    put_services(line, entry, false);
}

static void write_combined(struct line *line, const struct access_entry *entry) {
    char date[64];
    struct tm calendar;
    localtime_r(&entry->time.tv_sec, &calendar);
    strftime(date, sizeof date, "%d/%b/%Y:%H:%M:%S %z", &calendar);
    put_slice(line, entry->client);
    put_format(line, " - - [%s] \"", date);
    put_plain(line, entry->method, false);
    put_slice(line, SLICE(" "));
    put_plain(line, entry->url, false);
    put_format(line, " HTTP/1.%u\" %u %lu \"", entry->version % 10, entry->status,
               (unsigned long)entry->bytes);
    put_plain(line, entry->referer, true);
    put_slice(line, SLICE("\" \""));
    put_plain(line, entry->user_agent, true);
    put_format(line, "\" %s %s ", entry->result, entry->id);
    put_services(line, entry, false);
}

static void put_member(struct line *line, const char *name, struct slice value) {
    put_format(line, ",\"%s\":", name);
    put_json(line, value);
}

static void write_json(struct line *line, const struct access_entry *entry) {
    put_format(line, "{\"time\":%ld.%03ld,\"id\":\"%s\"", (long)entry->time.tv_sec,
               entry->time.tv_nsec / 1000000, entry->id);
    put_member(line, "client", entry->client);
    put_member(line, "method", entry->method);
    put_member(line, "url", entry->url);
    put_format(line, ",\"status\":%u,\"bytes\":%lu,\"result\":\"%s\",\"ms\":%lu.%03lu",
               entry->status, (unsigned long)entry->bytes, entry->result,
               (unsigned long)(entry->duration / 1000), (unsigned long)(entry->duration % 1000));
    put_member(line, "origin", entry->origin.length > 0 ? entry->origin : SLICE("-"));
    put_format(line, ",\"step\":\"%s\",\"aborted\":%s", entry->step,
               entry->aborted ? "true" : "false");
    if (entry->error != NULL)
        put_member(line, "error", slice_from(entry->error));
    put_member(line, "content_type", entry->content_type);
    put_member(line, "user_agent", entry->user_agent);
    put_member(line, "referer", entry->referer);
    put_slice(line, SLICE(",\"icap\":["));
    put_services(line, entry, true);
    put_slice(line, SLICE("]}"));
}

static void write_line(struct access_log *log, const struct access_entry *entry) {
    struct line line = {log->bytes + log->length, log->bytes + log->length + LINE_MAX_BYTES - 1};
    switch (log->format) {
    case ACCESS_LOG_SQUID: write_squid(&line, entry); break;
    case ACCESS_LOG_COMBINED: write_combined(&line, entry); break;
    case ACCESS_LOG_JSON: write_json(&line, entry); break;
    }
    *line.at++ = '\n';
    log->length = (size_t)(line.at - log->bytes);
    if (log->length >= GATHER)
        flush(log);
}

bool access_logs_wanted(const struct access_logs *logs) {
    return logs->count > 0;
}

void access_logs_write(struct access_logs *logs, const struct access_entry *entry) {
    CHECK_OBJ(logs, ACCESS_LOGS_MAGIC);
    for (size_t i = 0; i < logs->count; i++)
        write_line(&logs->logs[i], entry);
    if (logs->armed || logs->count == 0)
        return;
    logs->armed = true;
    loop_timer_after(logs->loop, &logs->timer, FLUSH_AFTER);
}
