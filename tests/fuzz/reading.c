#include "reading.h"

#include "base/assert.h"
#include "http/head_parser.h"

#include <llhttp.h>

bool reading_is_response(struct slice head) {
    return slice_starts_with(head, SLICE("HTTP/"));
}

static void refuse(struct reading *reading, const char *error) {
    reading->verdict = READING_REFUSED;
    reading->error = error;
}

/* The texts are large, and no one looks behind their lengths. */
static void clear(struct reading *reading) {
    memset(reading, 0, offsetof(struct reading, text));
    memset(&reading->fields[0], 0, sizeof reading->fields[0]);
}

static void take_framing(struct reading *reading, const struct framing *framing) {
    reading->kind = framing->kind;
    reading->length = framing->kind == FRAMING_LENGTH ? framing->length : 0;
    if (framing->kind == FRAMING_LENGTH && framing->length == 0)
        reading->kind = FRAMING_NONE;
}

void reading_by_retort(struct reading *reading, struct slice head) {
    struct http_head parsed;
    struct framing framing;
    bool response = reading_is_response(head);
    ssize_t used = response ? http_head_parse_response(&parsed, head.base, head.length, 0)
                            : http_head_parse_request(&parsed, head.base, head.length, 0);
    clear(reading);
    if (used < 0)
        refuse(reading, http_error_text((enum http_error) - used));
    if (used <= 0)
        return;
    if (!(response ? framing_of_response(&framing, &parsed, HTTP_METHOD_GET)
                   : framing_of_request(&framing, &parsed))) {
        refuse(reading, framing.error);
        return;
    }
    reading->verdict = READING_ACCEPTED;
    reading->used = (size_t)used;
    reading->status = parsed.status;
    reading->method = parsed.method;
    reading->target = parsed.target;
    take_framing(reading, &framing);
    for (unsigned i = 0; i < parsed.field_count; i++) {
        reading->fields[i].name = parsed.fields[i].name;
        reading->fields[i].value = parsed.fields[i].value;
    }
    reading->field_count = parsed.field_count;
}

/* Pieces of the same text come one after the other. */
static void append(struct reading *reading, struct slice *text, const char *bytes, size_t length) {
    ASSERT(reading->text_length + length <= sizeof reading->text);
    if (text->base == NULL)
        text->base = reading->text + reading->text_length;
    memcpy(reading->text + reading->text_length, bytes, length);
    text->length += length;
    reading->text_length += length;
}

static int on_method(llhttp_t *parser, const char *at, size_t length) {
    struct reading *reading = parser->data;
    append(reading, &reading->method, at, length);
    return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t length) {
    struct reading *reading = parser->data;
    append(reading, &reading->target, at, length);
    return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t length) {
    struct reading *reading = parser->data;
    ASSERT(reading->field_count < READING_FIELDS_MAX);
    append(reading, &reading->fields[reading->field_count].name, at, length);
    return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t length) {
    struct reading *reading = parser->data;
    append(reading, &reading->fields[reading->field_count].value, at, length);
    return 0;
}

static int on_header_value_complete(llhttp_t *parser) {
    struct reading *reading = parser->data;
    reading->field_count++;
    memset(&reading->fields[reading->field_count], 0, sizeof reading->fields[0]);
    return 0;
}

static int on_headers_complete(llhttp_t *parser) {
    struct reading *reading = parser->data;
    reading->verdict = READING_ACCEPTED;
    reading->status = parser->type == HTTP_RESPONSE ? parser->status_code : 0;
    reading->length = 0;
    if (parser->flags & F_CHUNKED) {
        reading->kind = FRAMING_CHUNKED;
    } else if (parser->flags & F_CONTENT_LENGTH) {
        reading->length = parser->content_length;
        reading->kind = parser->content_length > 0 ? FRAMING_LENGTH : FRAMING_NONE;
    } else {
        reading->kind = llhttp_message_needs_eof(parser) ? FRAMING_CLOSE : FRAMING_NONE;
    }
    return 0;
}

static void trim_values(struct reading *reading) {
    for (unsigned i = 0; i < reading->field_count; i++)
        reading->fields[i].value = slice_trim(reading->fields[i].value);
}

void reading_by_llhttp(struct reading *reading, struct slice head) {
    llhttp_t parser;
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_method = on_method;
    settings.on_url = on_url;
    settings.on_header_field = on_header_field;
    settings.on_header_value = on_header_value;
    settings.on_header_value_complete = on_header_value_complete;
    settings.on_headers_complete = on_headers_complete;
    llhttp_init(&parser, reading_is_response(head) ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
    clear(reading);
    parser.data = reading;
    while (reading->verdict == READING_INCOMPLETE && reading->used < head.length) {
        llhttp_errno_t error = llhttp_execute(&parser, head.base + reading->used++, 1);
        if (error != HPE_OK && error != HPE_PAUSED_UPGRADE)
            refuse(reading, llhttp_get_error_reason(&parser));
    }
    trim_values(reading);
}

const char *reading_difference(const struct reading *a, const struct reading *b) {
    if (a->verdict != b->verdict)
        return "verdict";
    if (a->verdict != READING_ACCEPTED)
        return NULL;
    if (a->used != b->used)
        return "length of the head";
    if (!slice_equal(a->method, b->method) || !slice_equal(a->target, b->target))
        return "request line";
    if (a->status != b->status)
        return "status";
    if (a->field_count != b->field_count)
        return "number of fields";
    for (unsigned i = 0; i < a->field_count; i++)
        if (!slice_equal(a->fields[i].name, b->fields[i].name) ||
            !slice_equal(a->fields[i].value, b->fields[i].value))
            return "fields";
    if (a->kind != b->kind || a->length != b->length)
        return "framing";
    return NULL;
}
