#include "transaction/access_log_line.h"

#include "base/assert.h"
#include "log/line.h"
#include "tls/facts.h"
#include "transaction/access_log_format.h"

#include <string.h>

/* Right-aligned in a field of six characters; longer ones take what they need. */
static void put_in_six(struct log_line *line, uint64_t number) {
    unsigned digits = slice_digits(number);
    char *start = line->at;
    log_line_put(line, SLICE("      "));
    line->at = start + (digits < 6 ? 6 - digits : 0);
    log_line_put_number(line, number);
}

static void put_milliseconds(struct log_line *line, struct slice name, uint64_t microseconds) {
    log_line_put(line, name);
    log_line_put_thousandths(line, microseconds / 1000, microseconds % 1000);
}

static void put_figures(struct log_line *line, const struct asked_figures *figures) {
    log_line_put(line, SLICE(",\"status\":"));
    log_line_put_number(line, figures->status);
    log_line_put(line, SLICE(",\"bytes_out\":"));
    log_line_put_number(line, figures->bytes_out);
    log_line_put(line, SLICE(",\"bytes_in\":"));
    log_line_put_number(line, figures->bytes_in);
    put_milliseconds(line, SLICE(",\"queue_ms\":"), figures->queue);
    if (figures->last_byte > 0)
        put_milliseconds(line, SLICE(",\"last_byte_ms\":"), figures->last_byte);
}

static void put_asked(struct log_line *line, const struct asked_service *asked, bool json) {
    if (json) {
        log_line_put(line, SLICE("{\"service\":"));
        log_line_put_json(line, slice_from(asked->service));
        log_line_put(line, SLICE(",\"verdict\":\""));
        log_line_put(line, slice_from(asked->verdict));
        log_line_put(line, SLICE("\",\"ms\":"));
        log_line_put_number(line, asked->milliseconds);
        if (asked->figures != NULL)
            put_figures(line, asked->figures);
        if (asked->error != NULL) {
            log_line_put(line, SLICE(",\"error\":"));
            log_line_put_json(line, slice_from(asked->error));
        }
        log_line_put(line, SLICE("}"));
    } else if (line->at < line->end) { /* a format may name the services many times */
        log_line_put_text(line, slice_from(asked->service));
        log_line_put(line, SLICE(":"));
        log_line_put(line, slice_from(asked->verdict));
        log_line_put(line, SLICE(":"));
        log_line_put_number(line, asked->milliseconds);
    }
}

static void put_all_services(struct log_line *line, const struct journal *journal, bool json) {
    for (unsigned i = 0; i < journal->asked_count; i++) {
        if (i > 0)
            log_line_put(line, SLICE(","));
        put_asked(line, &journal->asked[i], json);
    }
    if (journal->asked_count == 0 && !json)
        log_line_put(line, SLICE("-"));
}

void access_log_line_put_services(struct log_line *line, const struct journal *journal) {
    put_all_services(line, journal, false);
}

static void put_id(struct log_line *line, const struct journal *journal) {
    line->at = slice_put_hex(line->at, journal->number);
}

static void put_trace(struct log_line *line, const struct journal *journal) {
    char trace[TRACE_ID_TEXT];
    trace_context_write_id(journal->trace, trace);
    log_line_put(line, SLICE("\",\"trace_id\":\""));
    log_line_put(line, slice_make(trace, TRACE_ID_TEXT));
    log_line_put(line, SLICE("\",\"span_id\":\""));
    line->at = slice_put_hex(line->at, journal->trace->span);
}

/* Is the text of that time yet to be written? The clock stands still for many lines. */
static bool is_another_time(struct access_log_line_time *time_text, struct timespec time) {
    if (time_text->length > 0 && time_text->time.tv_sec == time.tv_sec &&
        time_text->time.tv_nsec == time.tv_nsec)
        return false;
    time_text->time = time;
    return true;
}

/* All of the room is copied, which is less work than so much of it as is text. */
static void put_time_text(struct log_line *line, const struct access_log_line_time *time_text) {
    memcpy(line->at, time_text->text, sizeof time_text->text);
    line->at += time_text->length;
}

/* "1764012345.678". Where lines are further apart than a millisecond, the seconds are mostly those
 * of the line before. */
static void put_time(struct log_line *line, struct access_log_line_time *time_text,
                     const struct timespec *time) {
    enum { DIGITS = 3 };
    bool same_second = time_text->length > 0 && time_text->time.tv_sec == time->tv_sec;
    if (is_another_time(time_text, *time)) {
        uint64_t milliseconds = (uint64_t)time->tv_nsec / 1000000;
        struct log_line text = {time_text->text, time_text->text + sizeof time_text->text};
        if (same_second) {
            text.at += time_text->length - DIGITS;
            log_line_put_three_digits(&text, (unsigned)milliseconds);
        } else {
            log_line_put_thousandths(&text, (uint64_t)time->tv_sec, milliseconds);
        }
        time_text->length = (size_t)(text.at - time_text->text);
    }
    put_time_text(line, time_text);
}

/* "%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt", as Squid's logformat says it. */
static void write_squid(struct log_line *line, struct access_log_line_time *time_text,
                        const struct journal *journal) {
    put_time(line, time_text, &journal->time);
    log_line_put(line, SLICE(" "));
    put_in_six(line, journal->duration / 1000);
    log_line_put(line, SLICE(" "));
    log_line_put(line, journal->client);
    log_line_put(line, SLICE(" "));
    access_log_line_put_result(line, journal);
    log_line_put(line, SLICE("/"));
    log_line_put_three_digits(line, journal_status(journal));
    log_line_put(line, SLICE(" "));
    log_line_put_number(line, journal->bytes);
    log_line_put(line, SLICE(" "));
    log_line_put_plain(line, journal->method, false);
    log_line_put(line, SLICE(" "));
    log_line_put_plain(line, journal_squid_url(journal), false);
    log_line_put(line, SLICE(" "));
    log_line_put_plain(line, journal_user(journal), false);
    if (journal->origin.length > 0) {
        log_line_put(line, SLICE(" HIER_DIRECT/"));
        log_line_put_plain(line, journal->origin, false);
    } else {
        log_line_put(line, SLICE(" HIER_NONE/-"));
    }
    log_line_put(line, SLICE(" "));
    log_line_put_plain(line, journal_media_type(journal), false);
}

/* Our columns behind those of the format. */
static void put_id_and_services(struct log_line *line, const struct journal *journal) {
    log_line_put(line, SLICE(" "));
    put_id(line, journal);
    log_line_put(line, SLICE(" "));
    put_all_services(line, journal, false);
}

/* "21/Nov/2026:09:15:00 +0000" */
static void put_date(struct log_line *line, struct access_log_line_time *time_text, time_t time) {
    struct tm calendar;
    if (is_another_time(time_text, (struct timespec){.tv_sec = time})) {
        localtime_r(&time, &calendar);
        time_text->length =
            strftime(time_text->text, sizeof time_text->text, "%d/%b/%Y:%H:%M:%S %z", &calendar);
    }
    put_time_text(line, time_text);
}

/* "-" where no request could be read, as Apache has it. */
static void put_request_line(struct log_line *line, const struct journal *journal) {
    if (journal->method.length == 0) {
        log_line_put(line, SLICE("-"));
        return;
    }
    log_line_put_plain(line, journal->method, false);
    log_line_put(line, SLICE(" "));
    log_line_put_plain(line, journal->url, false);
    log_line_put(line, SLICE(" HTTP/"));
    log_line_put(line, journal->version);
}

/* "%h %l %u %t \"%r\" %>s %B \"%{Referer}i\" \"%{User-agent}i\"", as Apache's LogFormat says it. */
static void write_combined(struct log_line *line, struct access_log_line_time *time_text,
                           const struct journal *journal) {
    log_line_put(line, journal->client);
    log_line_put(line, SLICE(" - "));
    log_line_put_plain(line, journal_user(journal), false);
    log_line_put(line, SLICE(" ["));
    put_date(line, time_text, journal->time.tv_sec);
    log_line_put(line, SLICE("] \""));
    put_request_line(line, journal);
    log_line_put(line, SLICE("\" "));
    log_line_put_three_digits(line, journal_status(journal));
    log_line_put(line, SLICE(" "));
    log_line_put_number(line, journal->body_bytes);
    log_line_put(line, SLICE(" \""));
    log_line_put_plain(line, journal_request_field(journal, HTTP_REFERER), true);
    log_line_put(line, SLICE("\" \""));
    log_line_put_plain(line, journal_request_field(journal, HTTP_USER_AGENT), true);
    log_line_put(line, SLICE("\""));
}

/* `before` is the comma and the name. */
static inline void put_known(struct log_line *line, struct slice before, struct slice value) {
    if (value.length > 0) {
        log_line_put(line, before);
        log_line_put_json(line, value);
    }
}

static void write_json(struct log_line *line, struct access_log_line_time *time_text,
                       const struct journal *journal) {
    log_line_put(line, SLICE("{\"time\":"));
    put_time(line, time_text, &journal->time);
    log_line_put(line, SLICE(",\"id\":\""));
    put_id(line, journal);
    if (journal->trace != NULL)
        put_trace(line, journal);
    log_line_put(line, SLICE("\""));
#define PUT_NAME(name)                log_line_put(line, SLICE(",\"" name "\":"))
#define PUT_TEXT(name, slice)         PUT_NAME(name), log_line_put_json(line, slice)
#define PUT_NUMBER(name, number)      PUT_NAME(name), log_line_put_number(line, number)
#define PUT_THOUSANDTHS(name, number) put_milliseconds(line, SLICE(",\"" name "\":"), number)
#define PUT_FLAG(name, flag)                                                                       \
    PUT_NAME(name), log_line_put(line, flag ? SLICE("true") : SLICE("false"))
#define PUT_TRUE(name, flag)                                                                       \
    if (flag)                                                                                      \
    log_line_put(line, SLICE(",\"" name "\":true"))
#define PUT_KNOWN(name, slice)        put_known(line, SLICE(",\"" name "\":"), slice)
#define LOG_MEMBER(name, kind, value) PUT_##kind(name, value);
#include "log/fields.def"
    log_line_put(line, SLICE(",\"icap\":["));
    put_all_services(line, journal, true);
    log_line_put(line, SLICE("]}"));
}

size_t access_log_line_write(char *out, const struct log_settings *log,
                             const struct journal *journal,
                             struct access_log_line_time *time_text) {
    struct log_line line = log_line_at(out);
    switch (log->format) {
    case ACCESS_LOG_SQUID: write_squid(&line, time_text, journal); break;
    case ACCESS_LOG_SQUID_EXTENDED:
        write_squid(&line, time_text, journal);
        put_id_and_services(&line, journal);
        break;
    case ACCESS_LOG_COMBINED: write_combined(&line, time_text, journal); break;
    case ACCESS_LOG_COMBINED_EXTENDED:
        write_combined(&line, time_text, journal);
        log_line_put(&line, SLICE(" "));
        log_line_put(&line, cache_result_name(journal->result));
        put_id_and_services(&line, journal);
        break;
    case ACCESS_LOG_JSON: write_json(&line, time_text, journal); break;
    case ACCESS_LOG_OWN: access_log_format_write(&line, log->own, journal); break;
    }
    *line.at++ = '\n';
    ASSERT(line.at <= out + LOG_LINE_MAX);
    return (size_t)(line.at - out);
}
