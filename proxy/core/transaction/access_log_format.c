#include "transaction/access_log_format.h"

#include "base/assert.h"
#include "tls/facts.h"

#include <stdio.h>
#include <time.h>

enum { TIME_TEXT = 200 };

/* A value of a line being written. */
struct format_value {
    struct log_line *line;
    const struct log_piece *piece;
    const struct journal *journal;
    struct url url; /* of the journal; its host is empty where the URL is none */
};

static void value_put(struct format_value *value, struct slice text) {
    switch (value->piece->escape) {
    case LOG_ESCAPE_PLAIN: log_line_put_plain(value->line, text, false); break;
    case LOG_ESCAPE_SPACED: log_line_put_plain(value->line, text, true); break;
    case LOG_ESCAPE_QUOTED: log_line_put_quoted(value->line, text); break;
    case LOG_ESCAPE_JSON: log_line_put_json_inside(value->line, text); break;
    }
}

static void value_put_number(struct format_value *value, uint64_t number) {
    log_line_put_number(value->line, number);
}

static void value_put_time(struct format_value *value, const char *form, bool utc) {
    char text[TIME_TEXT];
    struct tm calendar;
    time_t seconds = value->journal->time.tv_sec;
    if (utc)
        gmtime_r(&seconds, &calendar);
    else
        localtime_r(&seconds, &calendar);
    /* What strftime can't write whole is no text. */
    size_t length = strftime(text, sizeof text, form, &calendar);
    log_line_put_text(value->line, slice_make(text, length));
}

static void value_put_apache_time(struct format_value *value) {
    const char *form = value->piece->argument;
    if (form != NULL) {
        value_put_time(value, form, false);
        return;
    }
    log_line_put(value->line, SLICE("["));
    value_put_time(value, "%d/%b/%Y:%H:%M:%S %z", false);
    log_line_put(value->line, SLICE("]"));
}

static void put_local_time(struct format_value *value, bool utc) {
    const char *form = value->piece->argument;
    value_put_time(value, form != NULL ? form : "%d/%b/%Y:%H:%M:%S %z", utc);
}

static uint64_t duration_in_unit(const struct format_value *value) {
    const char *unit = value->piece->argument;
    if (unit == NULL || unit[0] == 's')
        return value->journal->duration / 1000000;
    return unit[0] == 'm' ? value->journal->duration / 1000 : value->journal->duration;
}

static struct slice value_of_field(const struct http_head *head, struct slice name) {
    const struct http_field *field = head == NULL ? NULL : http_head_find_text(head, name);
    return field == NULL ? slice_make("", 0) : field->value;
}

static struct slice request_field(const struct format_value *value) {
    return value_of_field(value->journal->request, slice_from(value->piece->argument));
}

static struct slice value_of_line(struct slice rest) {
    if (rest.length > 0 && rest.base[rest.length - 1] == '\r')
        rest.length--;
    return slice_trim(rest);
}

/* The first of that name among lines as HTTP/1.1 has them; a status line has no colon before its
 * blanks. */
static struct slice find_in_lines(struct slice lines, struct slice name) {
    struct slice line;
    while (slice_next_line(&lines, &line))
        if (line.length > name.length && line.base[name.length] == ':' &&
            slice_equal_nocase(slice_make(line.base, name.length), name))
            return value_of_line(
                slice_make(line.base + name.length + 1, line.length - name.length - 1));
    return slice_make("", 0);
}

/* The protocol adds the length of the body, so it is in no head here. */
static bool put_reply_length(struct format_value *value, struct slice name) {
    const struct reply *reply = value->journal->reply;
    if (!slice_equal_nocase(name, SLICE("Content-Length")) || reply->length < 0 ||
        reply_has_no_content(reply))
        return false;
    value_put_number(value, (uint64_t)reply->length);
    return true;
}

static void put_reply_field(struct format_value *value) {
    const struct reply *reply = value->journal->reply;
    struct slice name = slice_from(value->piece->argument), found = slice_make("", 0);
    if (reply != NULL && put_reply_length(value, name))
        return;
    if (reply != NULL && reply->head != NULL)
        found = value_of_field(reply->head, name);
    else if (reply != NULL)
        found = find_in_lines(reply->stored, name);
    if (reply != NULL && found.length == 0)
        found = find_in_lines(reply->extra, name);
    value_put(value, found);
}

static struct slice format_query(const struct url *url) {
    const char *mark = url->path_query.length > 0
                           ? memchr(url->path_query.base, '?', url->path_query.length)
                           : NULL;
    return mark == NULL
               ? slice_make("", 0)
               : slice_make(mark, (size_t)(url->path_query.base + url->path_query.length - mark));
}

static void put_trace_id(struct format_value *value, const struct trace_context *trace) {
    char text[TRACE_ID_TEXT];
    if (trace != NULL)
        trace_context_write_id(trace, text);
    value_put(value, slice_make(text, trace != NULL ? TRACE_ID_TEXT : 0));
}

static void put_protocol(struct format_value *value) {
    if (value->journal->method.length == 0) {
        value_put(value, slice_make("", 0));
        return;
    }
    log_line_put(value->line, SLICE("HTTP/"));
    log_line_put(value->line, value->journal->version);
}

static void format_put_request_line(struct format_value *value) {
    const struct journal *journal = value->journal;
    struct log_piece piece = *value->piece;
    struct format_value part = *value;
    if (piece.escape == LOG_ESCAPE_SPACED) /* the blanks between them are ours */
        piece.escape = LOG_ESCAPE_PLAIN;
    part.piece = &piece;
    value_put(&part, journal->method);
    if (journal->method.length == 0)
        return;
    log_line_put(value->line, SLICE(" "));
    value_put(&part, journal->url);
    log_line_put(value->line, SLICE(" "));
    put_protocol(value);
}

static uint64_t services_milliseconds(const struct journal *journal) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < journal->asked_count; i++)
        if (journal->asked[i].figures != NULL)
            sum += journal->asked[i].milliseconds;
    return sum;
}

/* "icap.example.com:1344", of "icap://icap.example.com:1344/gray". */
static struct slice service_host(const char *text) {
    struct slice uri = slice_from(text);
    const char *at = uri.length > 0 ? memmem(uri.base, uri.length, "://", 3) : NULL;
    size_t before = at == NULL ? 0 : (size_t)(at - uri.base) + 3;
    return slice_make(uri.base + before, strcspn(uri.base + before, "/?"));
}

static void put_clf(struct format_value *value, uint64_t number) {
    if (number > 0)
        value_put_number(value, number);
    else
        log_line_put(value->line, SLICE("-"));
}

/* The value of the piece's code. */
static void put_piece(struct format_value *value) {
    const struct journal *journal = value->journal;
    const struct asked_service *call =
        journal->call; /* there is one in icap_logs, which alone have their codes */
    switch (value->piece->code) {
#define PUT_TEXT(slice)           value_put(value, slice)
#define PUT_NAME(string)          value_put(value, slice_from(string))
#define PUT_WORDS(slice)          log_line_put(value->line, slice)
#define PUT_NUMBER(number)        value_put_number(value, (uint64_t)(number))
#define PUT_OWN(call_of_function) call_of_function
#define LOG_CODE(enumerator, spelling, argument, icap, kind, expression, meaning)                  \
    case LOG_CODE_##enumerator:                                                                    \
        PUT_##kind(expression);                                                                    \
        break;
#include "log/fields.def"
    case LOG_CODE_END: break;
    }
}

/* Moves the value from `start` on, or what stands in front of it, until it is as wide as it must
 * be. */
static void format_pad(struct log_line *line, char *start, const struct log_piece *piece) {
    size_t length = (size_t)(line->at - start);
    size_t missing = piece->width > length ? piece->width - length : 0;
    if (missing == 0)
        return;
    if (!piece->left)
        memmove(start + missing, start, length);
    memset(piece->left ? start + length : start, piece->zeros && !piece->left ? '0' : ' ', missing);
    line->at += missing;
}

void access_log_format_write(struct log_line *line, const struct log_format *format,
                             const struct journal *journal) {
    struct format_value value = {.line = line, .journal = journal};
    CHECK_OBJ(format, LOG_FORMAT_MAGIC);
    if (!url_parse(&value.url, journal->url))
        value.url = (struct url){0};
    for (const struct log_piece *piece = format->pieces;; piece++) {
        log_line_put(line, piece->literal);
        if (piece->code == LOG_CODE_END)
            return;
        char *start = line->at;
        value.piece = piece;
        put_piece(&value);
        format_pad(line, start, piece);
    }
}
