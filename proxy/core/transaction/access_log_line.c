#include "transaction/access_log_line.h"

#include "base/assert.h"
#include "log/line.h"
#include "tls/facts.h"
#include "transaction/access_log_format.h"

#include <string.h>

enum { CLIENT_LEFT = 499 };

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

/* What its exchange with the service came to. */
static void put_figures(struct log_line *line, const struct adapter_figures *figures) {
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

/* call NULL: nobody was asked, or what it sent was of no use. */
static void put_record(struct log_line *line, const struct adapt_record *record,
                       const struct adapter_call *call, bool json) {
    if (json) {
        log_line_put(line, SLICE("{\"service\":"));
        log_line_put_json(line, slice_from(record->service));
        log_line_put(line, SLICE(",\"verdict\":\""));
        log_line_put(line, slice_from(record->verdict));
        log_line_put(line, SLICE("\",\"ms\":"));
        log_line_put_number(line, record->milliseconds);
        if (call != NULL)
            put_figures(line, &call->figures);
        const char *error = adapt_record_error(record, call);
        if (error != NULL) {
            log_line_put(line, SLICE(",\"error\":"));
            log_line_put_json(line, slice_from(error));
        }
        log_line_put(line, SLICE("}"));
    } else if (line->at < line->end) { /* a format may name the services many times */
        log_line_put_text(line, slice_from(record->service));
        log_line_put(line, SLICE(":"));
        log_line_put(line, slice_from(record->verdict));
        log_line_put(line, SLICE(":"));
        log_line_put_number(line, record->milliseconds);
    }
}

static void put_all_services(struct log_line *line, const struct access_entry *entry, bool json) {
    bool first = true;
    for (unsigned i = 0; i < entry->chain_count; i++) {
        const struct adapt_chain *chain = entry->chains[i];
        for (unsigned j = 0; j < chain->at; j++) {
            if (!first)
                log_line_put(line, SLICE(","));
            put_record(line, &chain->records[j], chain->calls[j], json);
            first = false;
        }
    }
    if (first && !json)
        log_line_put(line, SLICE("-"));
}

void access_log_line_put_services(struct log_line *line, const struct access_entry *entry) {
    put_all_services(line, entry, false);
}

static void put_id(struct log_line *line, const struct access_entry *entry) {
    line->at = slice_put_hex(line->at, entry->number);
}

static void access_log_line_put_trace(struct log_line *line, const struct access_entry *entry) {
    char trace[TRACE_ID_TEXT];
    trace_context_write_id(entry->trace, trace);
    log_line_put(line, SLICE("\",\"trace_id\":\""));
    log_line_put(line, slice_make(trace, TRACE_ID_TEXT));
    log_line_put(line, SLICE("\",\"span_id\":\""));
    line->at = slice_put_hex(line->at, entry->trace->span);
}

/* Of the request, if there was one that could be read. */
static struct slice access_log_line_value_of(const struct access_entry *entry, enum http_name id) {
    return entry->request != NULL ? http_head_value(entry->request, id) : slice_make("", 0);
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

/* "text/html", of "text/html; charset=utf-8". */
struct slice access_log_line_media_type(const struct access_entry *entry) {
    struct slice type = entry->content_type;
    const char *parameters = type.length > 0 ? memchr(type.base, ';', type.length) : NULL;
    if (parameters == NULL)
        return type;
    return slice_trim(slice_make(type.base, (size_t)(parameters - type.base)));
}

/* What readers of the formats know as a status; theirs for a client that left before there was one
 * is that of nginx. */
unsigned access_log_line_status(const struct access_entry *entry) {
    return entry->status > 0 ? entry->status : CLIENT_LEFT;
}

/* Squid's words in place of a URL, where no request could be read. */
struct slice access_log_line_squid_url(const struct access_entry *entry) {
    if (entry->url.length > 0)
        return entry->url;
    return entry->status == 408 ? SLICE("error:transaction-end-before-headers")
                                : SLICE("error:invalid-request");
}

struct slice access_log_line_user(const struct access_entry *entry) {
    if (!entry->user_proved)
        return slice_make("", 0);
    return slice_equal(entry->user, SLICE("-")) ? SLICE("%2D") : entry->user;
}

static inline void put_user(struct log_line *line, const struct access_entry *entry) {
    if (entry->user_proved)
        log_line_put_plain(line, access_log_line_user(entry), false);
    else
        log_line_put(line, SLICE("-"));
}

/* "%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt", as Squid's logformat says it. */
static void write_squid(struct log_line *line, struct access_log_line_time *time_text,
                        const struct access_entry *entry) {
    put_time(line, time_text, &entry->time);
    log_line_put(line, SLICE(" "));
    put_in_six(line, entry->duration / 1000);
    log_line_put(line, SLICE(" "));
    log_line_put(line, entry->client);
    log_line_put(line, SLICE(" "));
    log_line_put(line, cache_result_squid_name(entry->result));
    log_line_put(line, entry->aborted ? SLICE("_ABORTED/") : SLICE("/"));
    log_line_put_three_digits(line, access_log_line_status(entry));
    log_line_put(line, SLICE(" "));
    log_line_put_number(line, entry->bytes);
    log_line_put(line, SLICE(" "));
    log_line_put_plain(line, entry->method, false);
    log_line_put(line, SLICE(" "));
    log_line_put_plain(line, access_log_line_squid_url(entry), false);
    log_line_put(line, SLICE(" "));
    put_user(line, entry);
    if (entry->origin.length > 0) {
        log_line_put(line, SLICE(" HIER_DIRECT/"));
        log_line_put_plain(line, entry->origin, false);
    } else {
        log_line_put(line, SLICE(" HIER_NONE/-"));
    }
    log_line_put(line, SLICE(" "));
    log_line_put_plain(line, access_log_line_media_type(entry), false);
}

/* Our columns behind those of the format. */
static void put_id_and_services(struct log_line *line, const struct access_entry *entry) {
    log_line_put(line, SLICE(" "));
    put_id(line, entry);
    log_line_put(line, SLICE(" "));
    put_all_services(line, entry, false);
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
static void put_request_line(struct log_line *line, const struct access_entry *entry) {
    if (entry->method.length == 0) {
        log_line_put(line, SLICE("-"));
        return;
    }
    log_line_put_plain(line, entry->method, false);
    log_line_put(line, SLICE(" "));
    log_line_put_plain(line, entry->url, false);
    log_line_put(line, SLICE(" HTTP/"));
    log_line_put(line, entry->version);
}

/* "%h %l %u %t \"%r\" %>s %B \"%{Referer}i\" \"%{User-agent}i\"", as Apache's LogFormat says it. */
static void write_combined(struct log_line *line, struct access_log_line_time *time_text,
                           const struct access_entry *entry) {
    log_line_put(line, entry->client);
    log_line_put(line, SLICE(" - "));
    put_user(line, entry);
    log_line_put(line, SLICE(" ["));
    put_date(line, time_text, entry->time.tv_sec);
    log_line_put(line, SLICE("] \""));
    put_request_line(line, entry);
    log_line_put(line, SLICE("\" "));
    log_line_put_three_digits(line, access_log_line_status(entry));
    log_line_put(line, SLICE(" "));
    log_line_put_number(line, entry->body_bytes);
    log_line_put(line, SLICE(" \""));
    log_line_put_plain(line, access_log_line_value_of(entry, HTTP_REFERER), true);
    log_line_put(line, SLICE("\" \""));
    log_line_put_plain(line, access_log_line_value_of(entry, HTTP_USER_AGENT), true);
    log_line_put(line, SLICE("\""));
}

/* `before` is the comma and the name. */
static void put_member(struct log_line *line, struct slice before, struct slice value) {
    log_line_put(line, before);
    log_line_put_json(line, value);
}

static void put_known(struct log_line *line, struct slice before, struct slice value) {
    if (value.length > 0)
        put_member(line, before, value);
}

static void access_log_line_put_connection(struct log_line *line,
                                           const struct access_entry *entry) {
    put_known(line, SLICE(",\"user\":"), entry->user);
    if (entry->version.length > 0 && entry->version.base[0] == '2')
        put_member(line, SLICE(",\"http_version\":"), entry->version);
    if (entry->tls != NULL) {
        put_member(line, SLICE(",\"tls_version\":"), slice_from(entry->tls->version));
        put_member(line, SLICE(",\"tls_cipher\":"), slice_from(entry->tls->cipher));
        put_known(line, SLICE(",\"tls_client_subject\":"), slice_from(entry->tls->subject));
        put_known(line, SLICE(",\"tls_client_serial\":"), slice_from(entry->tls->serial));
    }
    put_known(line, SLICE(",\"intercept\":"), slice_from(entry->intercept));
    put_known(line, SLICE(",\"connect\":"), entry->connect);
    put_known(line, SLICE(",\"sni\":"), entry->sni);
    put_known(line, SLICE(",\"tls_issuer\":"), entry->issuer);
    put_known(line, SLICE(",\"tls_verification\":"), entry->verification);
}

static void write_json(struct log_line *line, struct access_log_line_time *time_text,
                       const struct access_entry *entry) {
    log_line_put(line, SLICE("{\"time\":"));
    put_time(line, time_text, &entry->time);
    log_line_put(line, SLICE(",\"id\":\""));
    put_id(line, entry);
    if (entry->trace != NULL)
        access_log_line_put_trace(line, entry);
    put_member(line, SLICE("\",\"client\":"), entry->client);
    put_member(line, SLICE(",\"method\":"), entry->method);
    put_member(line, SLICE(",\"url\":"), entry->url);
    log_line_put(line, SLICE(",\"status\":"));
    log_line_put_number(line, entry->status);
    log_line_put(line, SLICE(",\"bytes\":"));
    log_line_put_number(line, entry->bytes);
    put_member(line, SLICE(",\"result\":"), cache_result_name(entry->result));
    log_line_put(line, SLICE(",\"ms\":"));
    log_line_put_thousandths(line, entry->duration / 1000, entry->duration % 1000);
    put_member(line, SLICE(",\"origin\":"), entry->origin.length > 0 ? entry->origin : SLICE("-"));
    if (entry->destination.length > 0)
        put_member(line, SLICE(",\"destination\":"), entry->destination);
    if (entry->unproven)
        log_line_put(line, SLICE(",\"mismatch\":true"));
    put_member(line, SLICE(",\"step\":"), slice_from(entry->step));
    log_line_put(line, entry->aborted ? SLICE(",\"aborted\":true") : SLICE(",\"aborted\":false"));
    if (entry->error != NULL)
        put_member(line, SLICE(",\"error\":"), slice_from(entry->error));
    put_known(line, SLICE(",\"access\":"), entry->access);
    put_known(line, SLICE(",\"access_log_only\":"), entry->access_log_only);
    put_known(line, SLICE(",\"limit\":"), slice_from(entry->limit));
    access_log_line_put_connection(line, entry);
    put_member(line, SLICE(",\"content_type\":"), entry->content_type);
    put_member(line, SLICE(",\"user_agent\":"), access_log_line_value_of(entry, HTTP_USER_AGENT));
    put_member(line, SLICE(",\"referer\":"), access_log_line_value_of(entry, HTTP_REFERER));
    log_line_put(line, SLICE(",\"icap\":["));
    put_all_services(line, entry, true);
    log_line_put(line, SLICE("]}"));
}

size_t access_log_line_write(char *out, const struct log_settings *log,
                             const struct access_entry *entry,
                             struct access_log_line_time *time_text) {
    struct log_line line = log_line_at(out);
    switch (log->format) {
    case ACCESS_LOG_SQUID: write_squid(&line, time_text, entry); break;
    case ACCESS_LOG_SQUID_EXTENDED:
        write_squid(&line, time_text, entry);
        put_id_and_services(&line, entry);
        break;
    case ACCESS_LOG_COMBINED: write_combined(&line, time_text, entry); break;
    case ACCESS_LOG_COMBINED_EXTENDED:
        write_combined(&line, time_text, entry);
        log_line_put(&line, SLICE(" "));
        log_line_put(&line, cache_result_name(entry->result));
        put_id_and_services(&line, entry);
        break;
    case ACCESS_LOG_JSON: write_json(&line, time_text, entry); break;
    case ACCESS_LOG_OWN: access_log_format_write(&line, log->own, entry); break;
    }
    *line.at++ = '\n';
    ASSERT(line.at <= out + LOG_LINE_MAX);
    return (size_t)(line.at - out);
}
