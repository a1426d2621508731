#include "transaction/access_log_format.h"

#include "adapt/adapter.h"
#include "base/assert.h"
#include "tls/facts.h"

#include <stdio.h>
#include <time.h>

enum { TIME_TEXT = 200 };

/* A value of a line being written. */
struct format_value {
    struct log_line *line;
    const struct log_piece *piece;
    const struct access_entry *entry;
    struct url url; /* of the entry; its host is empty where the URL is none */
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
    time_t seconds = value->entry->time.tv_sec;
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
        return value->entry->duration / 1000000;
    return unit[0] == 'm' ? value->entry->duration / 1000 : value->entry->duration;
}

static struct slice value_of_field(const struct http_head *head, struct slice name) {
    const struct http_field *field = head == NULL ? NULL : http_head_find_text(head, name);
    return field == NULL ? slice_make("", 0) : field->value;
}

static struct slice request_field(const struct format_value *value) {
    return value_of_field(value->entry->request, slice_from(value->piece->argument));
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
    const struct reply *reply = value->entry->reply;
    if (!slice_equal_nocase(name, SLICE("Content-Length")) || reply->length < 0 ||
        reply_has_no_content(reply))
        return false;
    value_put_number(value, (uint64_t)reply->length);
    return true;
}

static void put_reply_field(struct format_value *value) {
    const struct reply *reply = value->entry->reply;
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
    if (value->entry->method.length == 0) {
        value_put(value, slice_make("", 0));
        return;
    }
    log_line_put(value->line, SLICE("HTTP/"));
    log_line_put(value->line, value->entry->version);
}

static void format_put_request_line(struct format_value *value) {
    const struct access_entry *entry = value->entry;
    struct log_piece piece = *value->piece;
    struct format_value part = *value;
    if (piece.escape == LOG_ESCAPE_SPACED) /* the blanks between them are ours */
        piece.escape = LOG_ESCAPE_PLAIN;
    part.piece = &piece;
    value_put(&part, entry->method);
    if (entry->method.length == 0)
        return;
    log_line_put(value->line, SLICE(" "));
    value_put(&part, entry->url);
    log_line_put(value->line, SLICE(" "));
    put_protocol(value);
}

static void format_put_squid_result(struct format_value *value) {
    log_line_put(value->line, cache_result_squid_name(value->entry->result));
    if (value->entry->aborted)
        log_line_put(value->line, SLICE("_ABORTED"));
}

static uint64_t services_milliseconds(const struct access_entry *entry) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < entry->chain_count; i++)
        for (unsigned j = 0; j < entry->chains[i]->at; j++)
            if (entry->chains[i]->calls[j] != NULL)
                sum += entry->chains[i]->records[j].milliseconds;
    return sum;
}

static unsigned client_port(const struct access_entry *entry) {
    return entry->client_address == NULL || entry->hides_port ? 0
                                                              : address_port(entry->client_address);
}

/* Codes of requests. False: it is none of these. */
static bool put_request_value(struct format_value *value) {
    const struct access_entry *entry = value->entry;
    switch (value->piece->code) {
    case LOG_CODE_CLIENT: value_put(value, entry->client); return true;
    case LOG_CODE_CLIENT_PORT: value_put_number(value, client_port(entry)); return true;
    case LOG_CODE_LISTENER:
        value_put(value, slice_from(entry->listen != NULL ? entry->listen->name : ""));
        return true;
    case LOG_CODE_USER: value_put(value, access_log_line_user(entry)); return true;
    case LOG_CODE_METHOD: value_put(value, entry->method); return true;
    case LOG_CODE_URL: value_put(value, access_log_line_squid_url(entry)); return true;
    case LOG_CODE_VERSION: value_put(value, entry->version); return true;
    case LOG_CODE_PROTOCOL: put_protocol(value); return true;
    case LOG_CODE_REQUEST_LINE: format_put_request_line(value); return true;
    case LOG_CODE_SCHEME: value_put(value, value->url.scheme); return true;
    case LOG_CODE_HOST: value_put(value, value->url.host); return true;
    case LOG_CODE_PORT: value_put_number(value, value->url.port); return true;
    case LOG_CODE_PATH_QUERY: value_put(value, value->url.path_query); return true;
    case LOG_CODE_PATH: value_put(value, url_path(&value->url)); return true;
    case LOG_CODE_QUERY: value_put(value, format_query(&value->url)); return true;
    case LOG_CODE_REQUEST_FIELD: value_put(value, request_field(value)); return true;
    case LOG_CODE_TLS_VERSION:
        value_put(value, slice_from(entry->tls != NULL ? entry->tls->version : ""));
        return true;
    case LOG_CODE_TLS_CIPHER:
        value_put(value, slice_from(entry->tls != NULL ? entry->tls->cipher : ""));
        return true;
    case LOG_CODE_TLS_SUBJECT:
        value_put(value, slice_from(entry->tls != NULL ? entry->tls->subject : ""));
        return true;
    case LOG_CODE_SNI: value_put(value, entry->sni); return true;
    case LOG_CODE_INTERCEPT: value_put(value, slice_from(entry->intercept)); return true;
    case LOG_CODE_DESTINATION: value_put(value, entry->destination); return true;
    default: return false;
    }
}

/* Codes of times. False: it is none of these. */
static bool put_time_value(struct format_value *value) {
    const struct access_entry *entry = value->entry;
    switch (value->piece->code) {
    case LOG_CODE_SECONDS: value_put_number(value, (uint64_t)entry->time.tv_sec); return true;
    case LOG_CODE_MILLISECONDS:
        value_put_number(value, (uint64_t)entry->time.tv_nsec / 1000000);
        return true;
    case LOG_CODE_LOCAL_TIME: put_local_time(value, false); return true;
    case LOG_CODE_UTC_TIME: put_local_time(value, true); return true;
    case LOG_CODE_APACHE_TIME: value_put_apache_time(value); return true;
    case LOG_CODE_DURATION_MS: value_put_number(value, entry->duration / 1000); return true;
    case LOG_CODE_DURATION_US: value_put_number(value, entry->duration); return true;
    case LOG_CODE_DURATION: value_put_number(value, duration_in_unit(value)); return true;
    default: return false;
    }
}

/* Squid's words (Adaptation::Icap::XactOutcome). */
static struct slice icap_outcome(const struct access_call *call) {
    switch (call->call->verdict) {
    case ADAPTER_UNMODIFIED: return SLICE("ICAP_ECHO");
    case ADAPTER_MODIFIED: return SLICE("ICAP_MOD");
    case ADAPTER_SATISFIED: return SLICE("ICAP_SAT");
    case ADAPTER_PENDING: return SLICE("ICAP_ERR_GONE");
    case ADAPTER_FAILED: return SLICE("ICAP_ERR_OTHER");
    }
    return SLICE("ICAP_ERR_UNKNOWN");
}

static struct slice service_uri(const struct access_call *call) {
    const struct service_settings *settings = call->call->adapter->settings;
    return slice_from(settings->endpoint_count > 0 ? settings->uri_texts[0] : "");
}

/* "icap.example.com:1344", of "icap://icap.example.com:1344/gray". */
static struct slice service_host(const struct access_call *call) {
    struct slice uri = service_uri(call);
    const char *at = uri.length > 0 ? memmem(uri.base, uri.length, "://", 3) : NULL;
    size_t before = at == NULL ? 0 : (size_t)(at - uri.base) + 3;
    return slice_make(uri.base + before, strcspn(uri.base + before, "/?"));
}

/* Codes of calls of services. */
static void put_call_value(struct format_value *value) {
    const struct access_call *call = value->entry->call;
    ASSERT(call != NULL);
    const struct adapter_figures *figures = &call->call->figures;
    switch (value->piece->code) {
    case LOG_CODE_ICAP_SERVICE: value_put(value, slice_from(call->record->service)); break;
    case LOG_CODE_ICAP_VERDICT: value_put(value, slice_from(call->record->verdict)); break;
    case LOG_CODE_ICAP_OUTCOME: log_line_put(value->line, icap_outcome(call)); break;
    case LOG_CODE_ICAP_MS: value_put_number(value, call->record->milliseconds); break;
    case LOG_CODE_ICAP_WAIT_MS: value_put_number(value, figures->queue / 1000); break;
    case LOG_CODE_ICAP_STATUS: value_put_number(value, figures->status); break;
    case LOG_CODE_ICAP_BYTES_IN: value_put_number(value, figures->bytes_in); break;
    case LOG_CODE_ICAP_BYTES_OUT: value_put_number(value, figures->bytes_out); break;
    case LOG_CODE_ICAP_METHOD:
        log_line_put(value->line, call->reqmod ? SLICE("REQMOD") : SLICE("RESPMOD"));
        break;
    case LOG_CODE_ICAP_URI: value_put(value, service_uri(call)); break;
    case LOG_CODE_ICAP_HOST: value_put(value, service_host(call)); break;
    case LOG_CODE_ICAP_ERROR:
        value_put(value, slice_from(adapt_record_error(call->record, call->call)));
        break;
    default: ASSERT(false);
    }
}

/* All other codes: of the reply, and of what became of the transaction. */
static void put_reply_value(struct format_value *value) {
    const struct access_entry *entry = value->entry;
    switch (value->piece->code) {
    case LOG_CODE_NOTHING: value_put(value, slice_make("", 0)); break;
    case LOG_CODE_REPLY_FIELD: put_reply_field(value); break;
    case LOG_CODE_STATUS: value_put_number(value, access_log_line_status(entry)); break;
    case LOG_CODE_BYTES: value_put_number(value, entry->bytes); break;
    case LOG_CODE_BODY_BYTES: value_put_number(value, entry->body_bytes); break;
    case LOG_CODE_BODY_BYTES_CLF:
        if (entry->body_bytes > 0)
            value_put_number(value, entry->body_bytes);
        else
            log_line_put(value->line, SLICE("-"));
        break;
    case LOG_CODE_MEDIA_TYPE: value_put(value, access_log_line_media_type(entry)); break;
    case LOG_CODE_SQUID_RESULT: format_put_squid_result(value); break;
    case LOG_CODE_RESULT: log_line_put(value->line, cache_result_name(entry->result)); break;
    case LOG_CODE_HIERARCHY:
        log_line_put(value->line,
                     entry->origin.length > 0 ? SLICE("HIER_DIRECT") : SLICE("HIER_NONE"));
        break;
    case LOG_CODE_ORIGIN: value_put(value, entry->origin); break;
    case LOG_CODE_CONNECTION:
        log_line_put(value->line, entry->aborted ? SLICE("X") : SLICE("+"));
        break;
    case LOG_CODE_ERROR: value_put(value, slice_from(entry->error)); break;
    case LOG_CODE_ID: value->line->at = slice_put_hex(value->line->at, entry->number); break;
    case LOG_CODE_TRACE_ID: put_trace_id(value, entry->trace); break;
    case LOG_CODE_STEP: value_put(value, slice_from(entry->step)); break;
    case LOG_CODE_ACCESS: value_put(value, entry->access); break;
    case LOG_CODE_LIMIT: value_put(value, slice_from(entry->limit)); break;
    case LOG_CODE_SERVICES: access_log_line_put_services(value->line, entry); break;
    case LOG_CODE_SERVICES_MS: value_put_number(value, services_milliseconds(entry)); break;
    default: put_call_value(value);
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
                             const struct access_entry *entry) {
    struct format_value value = {.line = line, .entry = entry};
    CHECK_OBJ(format, LOG_FORMAT_MAGIC);
    if (!url_parse(&value.url, entry->url))
        value.url = (struct url){0};
    for (const struct log_piece *piece = format->pieces;; piece++) {
        log_line_put(line, piece->literal);
        if (piece->code == LOG_CODE_END)
            return;
        char *start = line->at;
        value.piece = piece;
        if (!put_time_value(&value) && !put_request_value(&value))
            put_reply_value(&value);
        format_pad(line, start, piece);
    }
}
