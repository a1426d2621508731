#include "transaction/access_log.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/text.h"
#include "http/bytes.h"
#include "transaction/outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A line has LINE_TEXT bytes for what comes from outside, and LINE_REST for its own words, numbers
 * and signs. */
enum { GATHER = 65536, LINE_TEXT = 49152, LINE_REST = 32768, FLUSH_AFTER = 200, TEXT_SHOWN = 2560 };
enum { CLIENT_LEFT = 499 };

struct access_log {
    int fd;
    const char *path; /* the settings' */
    uint64_t *lost;   /* the worker's counter of lines */
    bool failing;     /* what was written last could not be, or not all of it */
    enum access_log_format format;
    struct timespec timed; /* whose text is `time` */
    size_t time_length;
    char time[32];
    size_t length;
    char bytes[GATHER + LINE_TEXT + LINE_REST];
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

/* A full disk costs log lines, not requests. Behind a line of which it took a part, the next one
 * begins with the end of that. */
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

/* A line being written; texts are cut where they would go beyond `end`, behind which the rest fits.
 */
struct line {
    char *at, *end;
};

static inline void access_log_put(struct line *line, struct slice words) {
    line->at = slice_put(line->at, words);
}

static void put_text(struct line *line, struct slice text) {
    size_t room = line->at < line->end ? (size_t)(line->end - line->at) : 0;
    access_log_put(line, slice_make(text.base, text.length < room ? text.length : room));
}

static void access_log_put_number(struct line *line, uint64_t number) {
    line->at = slice_put_number(line->at, (int64_t)number);
}

/* Right-aligned in a field of six characters; longer ones take what they need. */
static void put_in_six(struct line *line, uint64_t number) {
    unsigned digits = slice_digits(number);
    char *start = line->at;
    access_log_put(line, SLICE("      "));
    line->at = start + (digits < 6 ? 6 - digits : 0);
    access_log_put_number(line, number);
}

static void put_three_digits(struct line *line, unsigned number) {
    *line->at++ = (char)('0' + number / 100);
    *line->at++ = (char)('0' + number / 10 % 10);
    *line->at++ = (char)('0' + number % 10);
}

/* "17.042", of a number of thousandths. */
static void put_thousandths(struct line *line, uint64_t whole, uint64_t thousandths) {
    access_log_put_number(line, whole);
    access_log_put(line, SLICE("."));
    put_three_digits(line, (unsigned)thousandths);
}

static void put_hex(struct line *line, struct slice before, unsigned byte) {
    static const char digits[] = "0123456789ABCDEF";
    access_log_put(line, before);
    *line->at++ = digits[byte >> 4];
    *line->at++ = digits[byte & 15];
}

static struct slice shown(struct slice text) {
    return slice_make(text.base, text.length < TEXT_SHOWN ? text.length : TEXT_SHOWN);
}

/* Is it to be copied just as it is? Hardly any is not. */
static inline bool access_log_is_plain(const struct line *line, struct slice text) {
    const char *end = text.base + text.length;
    return text.length <= TEXT_SHOWN && line->end - line->at >= (ptrdiff_t)text.length &&
           bytes_skip(text.base, end, BYTES_PLAIN) == end;
}

static void access_log_put_escaped(struct line *line, struct slice text, bool keep_spaces) {
    const char *at = text.base, *end = at + shown(text).length;
    while (at < end && line->at < line->end) {
        const char *plain = at;
        at = bytes_skip(at, end, BYTES_PLAIN);
        put_text(line, slice_make(plain, (size_t)(at - plain)));
        if (at == end)
            return;
        if (*at == ' ' && keep_spaces)
            access_log_put(line, SLICE(" "));
        else
            put_hex(line, SLICE("%"), (unsigned char)*at);
        at++;
    }
}

/* Bytes that could forge or break a line are shown as %XX; an empty text as "-". */
static inline void put_plain(struct line *line, struct slice text, bool keep_spaces) {
    if (text.length == 0)
        access_log_put(line, SLICE("-"));
    else if (access_log_is_plain(line, text))
        access_log_put(line, text);
    else
        access_log_put_escaped(line, text, keep_spaces);
}

static void put_unit(struct line *line, unsigned unit) {
    put_hex(line, SLICE("\\u"), unit >> 8);
    put_hex(line, SLICE(""), unit & 0xff);
}

/* What stands at the front, which is not plain; returns its length. What would turn the line
 * around or steer a terminal is escaped too, though JSON does not ask for that (RFC 8259 §7). */
static size_t put_json_character(struct line *line, struct slice text) {
    uint32_t character;
    size_t length = text_decode(text, &character);
    if (length == 0) {
        access_log_put(line, SLICE("\\ufffd"));
        return 1;
    }
    if (character == '"' || character == '\\') {
        access_log_put(line, SLICE("\\"));
        access_log_put(line, slice_make(text.base, 1));
    } else if (!text_is_hidden(character)) {
        access_log_put(line, slice_make(text.base, length));
    } else if (character < 0x10000) {
        put_unit(line, character);
    } else {
        put_unit(line, 0xd7c0 + (character >> 10));
        put_unit(line, 0xdc00 + (character & 0x3ff));
    }
    return length;
}

static void put_json_escaped(struct line *line, struct slice text) {
    const char *at = text.base, *end = at + shown(text).length;
    while (at < end && line->at < line->end) {
        const char *plain = at;
        at = bytes_skip(at, end, BYTES_PLAIN);
        put_text(line, slice_make(plain, (size_t)(at - plain)));
        if (at < end)
            at += put_json_character(line, slice_make(at, (size_t)(end - at)));
    }
}

static void put_json(struct line *line, struct slice text) {
    access_log_put(line, SLICE("\""));
    if (access_log_is_plain(line, text))
        access_log_put(line, text);
    else
        put_json_escaped(line, text);
    access_log_put(line, SLICE("\""));
}

static void put_milliseconds(struct line *line, struct slice name, uint64_t microseconds) {
    access_log_put(line, name);
    put_thousandths(line, microseconds / 1000, microseconds % 1000);
}

/* What its exchange with the service came to. */
static void put_call(struct line *line, const struct icap_call *call) {
    access_log_put(line, SLICE(",\"status\":"));
    access_log_put_number(line, call->status);
    access_log_put(line, SLICE(",\"bytes_out\":"));
    access_log_put_number(line, call->bytes_out);
    access_log_put(line, SLICE(",\"bytes_in\":"));
    access_log_put_number(line, call->bytes_in);
    put_milliseconds(line, SLICE(",\"queue_ms\":"), call->in_queue);
    if (call->to_last_byte > 0)
        put_milliseconds(line, SLICE(",\"last_byte_ms\":"), call->to_last_byte);
}

/* call NULL: nobody was asked, or what it sent was of no use. */
static void put_record(struct line *line, const struct adapt_record *record,
                       const struct icap_call *call, bool json) {
    if (json) {
        access_log_put(line, SLICE("{\"service\":"));
        put_json(line, slice_from(record->service));
        access_log_put(line, SLICE(",\"verdict\":\""));
        access_log_put(line, slice_from(record->verdict));
        access_log_put(line, SLICE("\",\"ms\":"));
        access_log_put_number(line, record->milliseconds);
        if (call != NULL)
            put_call(line, call);
        if (record->error != NULL) {
            access_log_put(line, SLICE(",\"error\":"));
            put_json(line, slice_from(record->error));
        }
        access_log_put(line, SLICE("}"));
    } else {
        put_text(line, slice_from(record->service));
        access_log_put(line, SLICE(":"));
        access_log_put(line, slice_from(record->verdict));
        access_log_put(line, SLICE(":"));
        access_log_put_number(line, record->milliseconds);
    }
}

static void put_services(struct line *line, const struct access_entry *entry, bool json) {
    bool first = true;
    for (unsigned i = 0; i < entry->chain_count; i++) {
        const struct adapt_chain *chain = entry->chains[i];
        for (unsigned j = 0; j < chain->at; j++) {
            if (!first)
                access_log_put(line, SLICE(","));
            put_record(line, &chain->records[j], chain->calls[j], json);
            first = false;
        }
    }
    if (first && !json)
        access_log_put(line, SLICE("-"));
}

static void put_id(struct line *line, const struct access_entry *entry) {
    line->at = slice_put_hex(line->at, entry->number);
}

/* Of the request, if there was one that could be read. */
static struct slice access_log_value_of(const struct access_entry *entry, enum http_name id) {
    return entry->request != NULL ? http_head_value(entry->request, id) : slice_make("", 0);
}

/* Is the text of that time yet to be written? The clock stands still for many lines. */
static bool is_another_time(struct access_log *log, struct timespec time) {
    if (log->time_length > 0 && log->timed.tv_sec == time.tv_sec &&
        log->timed.tv_nsec == time.tv_nsec)
        return false;
    log->timed = time;
    return true;
}

/* All of the room is copied, which is less work than so much of it as is text. */
static void put_time_text(struct line *line, const struct access_log *log) {
    memcpy(line->at, log->time, sizeof log->time);
    line->at += log->time_length;
}

/* "1764012345.678" */
static void put_time(struct line *line, struct access_log *log, const struct timespec *time) {
    if (is_another_time(log, *time)) {
        struct line text = {log->time, log->time + sizeof log->time};
        put_thousandths(&text, (uint64_t)time->tv_sec, (uint64_t)time->tv_nsec / 1000000);
        log->time_length = (size_t)(text.at - log->time);
    }
    put_time_text(line, log);
}

/* "text/html", of "text/html; charset=utf-8". */
static struct slice media_type(struct slice type) {
    const char *parameters = type.length > 0 ? memchr(type.base, ';', type.length) : NULL;
    if (parameters == NULL)
        return type;
    return slice_trim(slice_make(type.base, (size_t)(parameters - type.base)));
}

/* What readers of the formats know as a status; theirs for a client that left before there was one
 * is that of nginx. */
static unsigned known_status(const struct access_entry *entry) {
    return entry->status > 0 ? entry->status : CLIENT_LEFT;
}

/* Squid's words in place of a URL, where no request could be read. */
static struct slice squid_url(const struct access_entry *entry) {
    if (entry->url.length > 0)
        return entry->url;
    return entry->status == 408 ? SLICE("error:transaction-end-before-headers")
                                : SLICE("error:invalid-request");
}

/* "%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt", as Squid's logformat says it. */
static void write_squid(struct line *line, struct access_log *log,
                        const struct access_entry *entry) {
    put_time(line, log, &entry->time);
    access_log_put(line, SLICE(" "));
    put_in_six(line, entry->duration / 1000);
    access_log_put(line, SLICE(" "));
    access_log_put(line, entry->client);
    access_log_put(line, SLICE(" "));
    access_log_put(line, cache_result_squid_name(entry->result));
    access_log_put(line, entry->aborted ? SLICE("_ABORTED/") : SLICE("/"));
    put_three_digits(line, known_status(entry));
    access_log_put(line, SLICE(" "));
    access_log_put_number(line, entry->bytes);
    access_log_put(line, SLICE(" "));
    put_plain(line, entry->method, false);
    access_log_put(line, SLICE(" "));
    put_plain(line, squid_url(entry), false);
    access_log_put(line,
                   entry->origin.length > 0 ? SLICE(" - HIER_DIRECT/") : SLICE(" - HIER_NONE/"));
    put_plain(line, entry->origin, false);
    access_log_put(line, SLICE(" "));
    put_plain(line, media_type(entry->content_type), false);
}

/* Our columns behind those of the format. */
static void put_id_and_services(struct line *line, const struct access_entry *entry) {
    access_log_put(line, SLICE(" "));
    put_id(line, entry);
    access_log_put(line, SLICE(" "));
    put_services(line, entry, false);
}

/* "21/Nov/2026:09:15:00 +0000" */
static void put_date(struct line *line, struct access_log *log, time_t time) {
    struct tm calendar;
    if (is_another_time(log, (struct timespec){.tv_sec = time})) {
        localtime_r(&time, &calendar);
        log->time_length = strftime(log->time, sizeof log->time, "%d/%b/%Y:%H:%M:%S %z", &calendar);
    }
    put_time_text(line, log);
}

/* "-" where no request could be read, as Apache has it. */
static void put_request_line(struct line *line, const struct access_entry *entry) {
    if (entry->method.length == 0) {
        access_log_put(line, SLICE("-"));
        return;
    }
    put_plain(line, entry->method, false);
    access_log_put(line, SLICE(" "));
    put_plain(line, entry->url, false);
    access_log_put(line, SLICE(" HTTP/"));
    access_log_put(line, entry->version);
}

/* "%h %l %u %t \"%r\" %>s %B \"%{Referer}i\" \"%{User-agent}i\"", as Apache's LogFormat says it. */
static void write_combined(struct line *line, struct access_log *log,
                           const struct access_entry *entry) {
    access_log_put(line, entry->client);
    access_log_put(line, SLICE(" - - ["));
    put_date(line, log, entry->time.tv_sec);
    access_log_put(line, SLICE("] \""));
    put_request_line(line, entry);
    access_log_put(line, SLICE("\" "));
    put_three_digits(line, known_status(entry));
    access_log_put(line, SLICE(" "));
    access_log_put_number(line, entry->body_bytes);
    access_log_put(line, SLICE(" \""));
    put_plain(line, access_log_value_of(entry, HTTP_REFERER), true);
    access_log_put(line, SLICE("\" \""));
    put_plain(line, access_log_value_of(entry, HTTP_USER_AGENT), true);
    access_log_put(line, SLICE("\""));
}

/* `before` is the comma and the name. */
static void put_member(struct line *line, struct slice before, struct slice value) {
    access_log_put(line, before);
    put_json(line, value);
}

static void write_json(struct line *line, struct access_log *log,
                       const struct access_entry *entry) {
    access_log_put(line, SLICE("{\"time\":"));
    put_time(line, log, &entry->time);
    access_log_put(line, SLICE(",\"id\":\""));
    put_id(line, entry);
    put_member(line, SLICE("\",\"client\":"), entry->client);
    put_member(line, SLICE(",\"method\":"), entry->method);
    put_member(line, SLICE(",\"url\":"), entry->url);
    access_log_put(line, SLICE(",\"status\":"));
    access_log_put_number(line, entry->status);
    access_log_put(line, SLICE(",\"bytes\":"));
    access_log_put_number(line, entry->bytes);
    put_member(line, SLICE(",\"result\":"), cache_result_name(entry->result));
    access_log_put(line, SLICE(",\"ms\":"));
    put_thousandths(line, entry->duration / 1000, entry->duration % 1000);
    put_member(line, SLICE(",\"origin\":"), entry->origin.length > 0 ? entry->origin : SLICE("-"));
    put_member(line, SLICE(",\"step\":"), slice_from(entry->step));
    access_log_put(line, entry->aborted ? SLICE(",\"aborted\":true") : SLICE(",\"aborted\":false"));
    if (entry->error != NULL)
        put_member(line, SLICE(",\"error\":"), slice_from(entry->error));
    put_member(line, SLICE(",\"content_type\":"), entry->content_type);
    put_member(line, SLICE(",\"user_agent\":"), access_log_value_of(entry, HTTP_USER_AGENT));
    put_member(line, SLICE(",\"referer\":"), access_log_value_of(entry, HTTP_REFERER));
    access_log_put(line, SLICE(",\"icap\":["));
    put_services(line, entry, true);
    access_log_put(line, SLICE("]}"));
}

static void access_log_write_line(struct access_log *log, const struct access_entry *entry) {
    struct line line = {log->bytes + log->length, log->bytes + log->length + LINE_TEXT};
    switch (log->format) {
    case ACCESS_LOG_SQUID: write_squid(&line, log, entry); break;
    case ACCESS_LOG_SQUID_EXTENDED:
        write_squid(&line, log, entry);
        put_id_and_services(&line, entry);
        break;
    case ACCESS_LOG_COMBINED: write_combined(&line, log, entry); break;
    case ACCESS_LOG_COMBINED_EXTENDED:
        write_combined(&line, log, entry);
        access_log_put(&line, SLICE(" "));
        access_log_put(&line, cache_result_name(entry->result));
        put_id_and_services(&line, entry);
        break;
    case ACCESS_LOG_JSON: write_json(&line, log, entry); break;
    }
    *line.at++ = '\n';
    ASSERT(line.at <= line.end + LINE_REST);
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
        access_log_write_line(&logs->logs[i], entry);
    if (logs->armed || logs->count == 0)
        return;
    logs->armed = true;
    loop_timer_after(logs->loop, &logs->timer, FLUSH_AFTER);
}
