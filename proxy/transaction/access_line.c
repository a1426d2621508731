#include "transaction/access_line.h"

#include "base/assert.h"
#include "base/text.h"
#include "http/bytes.h"
#include "tls/facts.h"

#include <string.h>

/* A line has LINE_TEXT bytes for what comes from outside, and the rest for its own words, numbers
 * and signs. TEXT_SHOWN is the most that is shown of one text. */
enum { LINE_TEXT = 49152, TEXT_SHOWN = 2560 };
enum { CLIENT_LEFT = 499 };

/* A line being written; texts are cut where they would go beyond `end`, behind which the rest fits.
 */
struct line {
    char *at, *end;
};

static inline void access_line_put(struct line *line, struct slice words) {
    line->at = slice_put(line->at, words);
}

static void put_text(struct line *line, struct slice text) {
    size_t room = line->at < line->end ? (size_t)(line->end - line->at) : 0;
    access_line_put(line, slice_make(text.base, text.length < room ? text.length : room));
}

static void access_line_put_number(struct line *line, uint64_t number) {
    line->at = slice_put_number(line->at, (int64_t)number);
}

/* Right-aligned in a field of six characters; longer ones take what they need. */
static void put_in_six(struct line *line, uint64_t number) {
    unsigned digits = slice_digits(number);
    char *start = line->at;
    access_line_put(line, SLICE("      "));
    line->at = start + (digits < 6 ? 6 - digits : 0);
    access_line_put_number(line, number);
}

static void put_three_digits(struct line *line, unsigned number) {
    *line->at++ = (char)('0' + number / 100);
    *line->at++ = (char)('0' + number / 10 % 10);
    *line->at++ = (char)('0' + number % 10);
}

/* "17.042", of a number of thousandths. */
static void put_thousandths(struct line *line, uint64_t whole, uint64_t thousandths) {
    access_line_put_number(line, whole);
    access_line_put(line, SLICE("."));
    put_three_digits(line, (unsigned)thousandths);
}

static void put_hex(struct line *line, struct slice before, unsigned byte) {
    static const char digits[] = "0123456789ABCDEF";
    access_line_put(line, before);
    *line->at++ = digits[byte >> 4];
    *line->at++ = digits[byte & 15];
}

static struct slice shown(struct slice text) {
    return slice_make(text.base, text.length < TEXT_SHOWN ? text.length : TEXT_SHOWN);
}

/* Is it to be copied just as it is? Hardly any is not. */
static inline bool access_line_is_plain(const struct line *line, struct slice text) {
    const char *end = text.base + text.length;
    return text.length <= TEXT_SHOWN && line->end - line->at >= (ptrdiff_t)text.length &&
           bytes_skip(text.base, end, BYTES_PLAIN) == end;
}

static void access_line_put_escaped(struct line *line, struct slice text, bool keep_spaces) {
    const char *at = text.base, *end = at + shown(text).length;
    while (at < end && line->at < line->end) {
        const char *plain = at;
        at = bytes_skip(at, end, BYTES_PLAIN);
        put_text(line, slice_make(plain, (size_t)(at - plain)));
        if (at == end)
            return;
        if (*at == ' ' && keep_spaces)
            access_line_put(line, SLICE(" "));
        else
            put_hex(line, SLICE("%"), (unsigned char)*at);
        at++;
    }
}

/* Bytes that could forge or break a line are shown as %XX; an empty text as "-". */
static inline void put_plain(struct line *line, struct slice text, bool keep_spaces) {
    if (text.length == 0)
        access_line_put(line, SLICE("-"));
    else if (access_line_is_plain(line, text))
        access_line_put(line, text);
    else
        access_line_put_escaped(line, text, keep_spaces);
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
        access_line_put(line, SLICE("\\ufffd"));
        return 1;
    }
    if (character == '"' || character == '\\') {
        access_line_put(line, SLICE("\\"));
        access_line_put(line, slice_make(text.base, 1));
    } else if (!text_is_hidden(character)) {
        access_line_put(line, slice_make(text.base, length));
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
    access_line_put(line, SLICE("\""));
    if (access_line_is_plain(line, text))
        access_line_put(line, text);
    else
        put_json_escaped(line, text);
    access_line_put(line, SLICE("\""));
}

static void put_milliseconds(struct line *line, struct slice name, uint64_t microseconds) {
    access_line_put(line, name);
    put_thousandths(line, microseconds / 1000, microseconds % 1000);
}

/* What its exchange with the service came to. */
static void put_figures(struct line *line, const struct adapter_figures *figures) {
    access_line_put(line, SLICE(",\"status\":"));
    access_line_put_number(line, figures->status);
    access_line_put(line, SLICE(",\"bytes_out\":"));
    access_line_put_number(line, figures->bytes_out);
    access_line_put(line, SLICE(",\"bytes_in\":"));
    access_line_put_number(line, figures->bytes_in);
    put_milliseconds(line, SLICE(",\"queue_ms\":"), figures->queue);
    if (figures->last_byte > 0)
        put_milliseconds(line, SLICE(",\"last_byte_ms\":"), figures->last_byte);
}

/* call NULL: nobody was asked, or what it sent was of no use. */
static void put_record(struct line *line, const struct adapt_record *record,
                       const struct adapter_call *call, bool json) {
    if (json) {
        access_line_put(line, SLICE("{\"service\":"));
        put_json(line, slice_from(record->service));
        access_line_put(line, SLICE(",\"verdict\":\""));
        access_line_put(line, slice_from(record->verdict));
        access_line_put(line, SLICE("\",\"ms\":"));
        access_line_put_number(line, record->milliseconds);
        if (call != NULL)
            put_figures(line, &call->figures);
        if (record->error != NULL) {
            access_line_put(line, SLICE(",\"error\":"));
            put_json(line, slice_from(record->error));
        }
        access_line_put(line, SLICE("}"));
    } else {
        put_text(line, slice_from(record->service));
        access_line_put(line, SLICE(":"));
        access_line_put(line, slice_from(record->verdict));
        access_line_put(line, SLICE(":"));
        access_line_put_number(line, record->milliseconds);
    }
}

static void put_services(struct line *line, const struct access_entry *entry, bool json) {
    bool first = true;
    for (unsigned i = 0; i < entry->chain_count; i++) {
        const struct adapt_chain *chain = entry->chains[i];
        for (unsigned j = 0; j < chain->at; j++) {
            if (!first)
                access_line_put(line, SLICE(","));
            put_record(line, &chain->records[j], chain->calls[j], json);
            first = false;
        }
    }
    if (first && !json)
        access_line_put(line, SLICE("-"));
}

static void put_id(struct line *line, const struct access_entry *entry) {
    line->at = slice_put_hex(line->at, entry->number);
}

/* Of the request, if there was one that could be read. */
static struct slice access_line_value_of(const struct access_entry *entry, enum http_name id) {
    return entry->request != NULL ? http_head_value(entry->request, id) : slice_make("", 0);
}

/* Is the text of that time yet to be written? The clock stands still for many lines. */
static bool is_another_time(struct access_line_time *time_text, struct timespec time) {
    if (time_text->length > 0 && time_text->time.tv_sec == time.tv_sec &&
        time_text->time.tv_nsec == time.tv_nsec)
        return false;
    time_text->time = time;
    return true;
}

/* All of the room is copied, which is less work than so much of it as is text. */
static void put_time_text(struct line *line, const struct access_line_time *time_text) {
    memcpy(line->at, time_text->text, sizeof time_text->text);
    line->at += time_text->length;
}

/* "1764012345.678". Where lines are further apart than a millisecond, the seconds are mostly those
 * of the line before. */
static void put_time(struct line *line, struct access_line_time *time_text,
                     const struct timespec *time) {
    enum { DIGITS = 3 };
    bool same_second = time_text->length > 0 && time_text->time.tv_sec == time->tv_sec;
    if (is_another_time(time_text, *time)) {
        uint64_t milliseconds = (uint64_t)time->tv_nsec / 1000000;
        struct line text = {time_text->text, time_text->text + sizeof time_text->text};
        if (same_second) {
            text.at += time_text->length - DIGITS;
            put_three_digits(&text, (unsigned)milliseconds);
        } else {
            put_thousandths(&text, (uint64_t)time->tv_sec, milliseconds);
        }
        time_text->length = (size_t)(text.at - time_text->text);
    }
    put_time_text(line, time_text);
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

/* A name that nobody has proved is not shown where readers take it for a user's. */
static inline void put_user(struct line *line, const struct access_entry *entry) {
    if (!entry->user_proved)
        access_line_put(line, SLICE("-"));
    else if (slice_equal(entry->user, SLICE("-")))
        access_line_put(line, SLICE("%2D"));
    else
        put_plain(line, entry->user, false);
}

/* "%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt", as Squid's logformat says it. */
static void write_squid(struct line *line, struct access_line_time *time_text,
                        const struct access_entry *entry) {
    put_time(line, time_text, &entry->time);
    access_line_put(line, SLICE(" "));
    put_in_six(line, entry->duration / 1000);
    access_line_put(line, SLICE(" "));
    access_line_put(line, entry->client);
    access_line_put(line, SLICE(" "));
    access_line_put(line, cache_result_squid_name(entry->result));
    access_line_put(line, entry->aborted ? SLICE("_ABORTED/") : SLICE("/"));
    put_three_digits(line, known_status(entry));
    access_line_put(line, SLICE(" "));
    access_line_put_number(line, entry->bytes);
    access_line_put(line, SLICE(" "));
    put_plain(line, entry->method, false);
    access_line_put(line, SLICE(" "));
    put_plain(line, squid_url(entry), false);
    access_line_put(line, SLICE(" "));
    put_user(line, entry);
    if (entry->origin.length > 0) {
        access_line_put(line, SLICE(" HIER_DIRECT/"));
        put_plain(line, entry->origin, false);
    } else {
        access_line_put(line, SLICE(" HIER_NONE/-"));
    }
    access_line_put(line, SLICE(" "));
    put_plain(line, media_type(entry->content_type), false);
}

/* Our columns behind those of the format. */
static void put_id_and_services(struct line *line, const struct access_entry *entry) {
    access_line_put(line, SLICE(" "));
    put_id(line, entry);
    access_line_put(line, SLICE(" "));
    put_services(line, entry, false);
}

/* "21/Nov/2026:09:15:00 +0000" */
static void put_date(struct line *line, struct access_line_time *time_text, time_t time) {
    struct tm calendar;
    if (is_another_time(time_text, (struct timespec){.tv_sec = time})) {
        localtime_r(&time, &calendar);
        time_text->length =
            strftime(time_text->text, sizeof time_text->text, "%d/%b/%Y:%H:%M:%S %z", &calendar);
    }
    put_time_text(line, time_text);
}

/* "-" where no request could be read, as Apache has it. */
static void put_request_line(struct line *line, const struct access_entry *entry) {
    if (entry->method.length == 0) {
        access_line_put(line, SLICE("-"));
        return;
    }
    put_plain(line, entry->method, false);
    access_line_put(line, SLICE(" "));
    put_plain(line, entry->url, false);
    access_line_put(line, SLICE(" HTTP/"));
    access_line_put(line, entry->version);
}

/* "%h %l %u %t \"%r\" %>s %B \"%{Referer}i\" \"%{User-agent}i\"", as Apache's LogFormat says it. */
static void write_combined(struct line *line, struct access_line_time *time_text,
                           const struct access_entry *entry) {
    access_line_put(line, entry->client);
    access_line_put(line, SLICE(" - "));
    put_user(line, entry);
    access_line_put(line, SLICE(" ["));
    put_date(line, time_text, entry->time.tv_sec);
    access_line_put(line, SLICE("] \""));
    put_request_line(line, entry);
    access_line_put(line, SLICE("\" "));
    put_three_digits(line, known_status(entry));
    access_line_put(line, SLICE(" "));
    access_line_put_number(line, entry->body_bytes);
    access_line_put(line, SLICE(" \""));
    put_plain(line, access_line_value_of(entry, HTTP_REFERER), true);
    access_line_put(line, SLICE("\" \""));
    put_plain(line, access_line_value_of(entry, HTTP_USER_AGENT), true);
    access_line_put(line, SLICE("\""));
}

/* `before` is the comma and the name. */
static void put_member(struct line *line, struct slice before, struct slice value) {
    access_line_put(line, before);
    put_json(line, value);
}

static void put_known(struct line *line, struct slice before, struct slice value) {
    if (value.length > 0)
        put_member(line, before, value);
}

static void access_line_put_tls(struct line *line, const struct access_entry *entry) {
    put_known(line, SLICE(",\"user\":"), entry->user);
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

static void write_json(struct line *line, struct access_line_time *time_text,
                       const struct access_entry *entry) {
    access_line_put(line, SLICE("{\"time\":"));
    put_time(line, time_text, &entry->time);
    access_line_put(line, SLICE(",\"id\":\""));
    put_id(line, entry);
    put_member(line, SLICE("\",\"client\":"), entry->client);
    put_member(line, SLICE(",\"method\":"), entry->method);
    put_member(line, SLICE(",\"url\":"), entry->url);
    access_line_put(line, SLICE(",\"status\":"));
    access_line_put_number(line, entry->status);
    access_line_put(line, SLICE(",\"bytes\":"));
    access_line_put_number(line, entry->bytes);
    put_member(line, SLICE(",\"result\":"), cache_result_name(entry->result));
    access_line_put(line, SLICE(",\"ms\":"));
    put_thousandths(line, entry->duration / 1000, entry->duration % 1000);
    put_member(line, SLICE(",\"origin\":"), entry->origin.length > 0 ? entry->origin : SLICE("-"));
    if (entry->destination.length > 0)
        put_member(line, SLICE(",\"destination\":"), entry->destination);
    if (entry->unproven)
        access_line_put(line, SLICE(",\"mismatch\":true"));
    put_member(line, SLICE(",\"step\":"), slice_from(entry->step));
    access_line_put(line,
                    entry->aborted ? SLICE(",\"aborted\":true") : SLICE(",\"aborted\":false"));
    if (entry->error != NULL)
        put_member(line, SLICE(",\"error\":"), slice_from(entry->error));
    put_known(line, SLICE(",\"access\":"), entry->access);
    put_known(line, SLICE(",\"access_log_only\":"), entry->access_log_only);
    put_known(line, SLICE(",\"limit\":"), slice_from(entry->limit));
    access_line_put_tls(line, entry);
    put_member(line, SLICE(",\"content_type\":"), entry->content_type);
    put_member(line, SLICE(",\"user_agent\":"), access_line_value_of(entry, HTTP_USER_AGENT));
    put_member(line, SLICE(",\"referer\":"), access_line_value_of(entry, HTTP_REFERER));
    access_line_put(line, SLICE(",\"icap\":["));
    put_services(line, entry, true);
    access_line_put(line, SLICE("]}"));
}

size_t access_line_write(char *out, enum access_log_format format, const struct access_entry *entry,
                         struct access_line_time *time_text) {
    struct line line = {out, out + LINE_TEXT};
    switch (format) {
    case ACCESS_LOG_SQUID: write_squid(&line, time_text, entry); break;
    case ACCESS_LOG_SQUID_EXTENDED:
        write_squid(&line, time_text, entry);
        put_id_and_services(&line, entry);
        break;
    case ACCESS_LOG_COMBINED: write_combined(&line, time_text, entry); break;
    case ACCESS_LOG_COMBINED_EXTENDED:
        write_combined(&line, time_text, entry);
        access_line_put(&line, SLICE(" "));
        access_line_put(&line, cache_result_name(entry->result));
        put_id_and_services(&line, entry);
        break;
    case ACCESS_LOG_JSON: write_json(&line, time_text, entry); break;
    }
    *line.at++ = '\n';
    ASSERT(line.at <= out + ACCESS_LINE_MAX);
    return (size_t)(line.at - out);
}
