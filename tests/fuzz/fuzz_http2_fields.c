/*
 * The fields of HTTP/2: lines "name: value", where a line may have any byte but a newline.
 *
 * The first line is the kind of message: "request", "response", "trailers", and a word more for a
 * listener that takes extended CONNECT, or for trailers of a response. A head that is good can be written as a message of HTTP/1.1,
 * and that protocol's parser finds the same in it: so nothing in a name or a value becomes a line, a
 * field or a request of its own. It has no field of connections, at most one Content-Length, and,
 * when it is a request, one Host, which the authority equals.
 */
#include "base/assert.h"
#include "http/framing.h"
#include "http/head_parser.h"
#include "http/url.h"
#include "http2/fields.h"
#include "http2/hpack_encode.h"
#include "lines.h"

enum { FIELDS_TEXT = 1 << 16, FIELDS_MOST = 300, FIELDS_SIZE = 1 << 15 };

static struct hpack_list list;

/* A string of a literal, with the letters as they are. */
static char *put_raw(char *at, struct slice text) {
    char *end = hpack_put_literal_name(at, 0, text) - 1;
    memmove(at, at + 1, (size_t)(end - at));
    if (text.length > 0)
        memcpy(end - text.length, text.base, text.length);
    return end;
}

/* A block of literals, one a line, which go into the table. The colon of a pseudo field does not
 * end the name. */
static size_t put_block(struct lines *lines, char *block, size_t room) {
    char *at = block;
    while (lines->rest.length > 0) {
        struct slice line = lines_next(lines);
        const char *colon = line.length < 2 ? NULL : memchr(line.base + 1, ':', line.length - 1);
        size_t name = colon == NULL ? line.length : (size_t)(colon - line.base);
        size_t begin = name + (colon != NULL) + (name + 1 < line.length && colon[1] == ' ');
        if (HPACK_ROOM(line.length) > room - (size_t)(at - block))
            break;
        *at++ = 0x40;
        at = put_raw(at, slice_make(line.base, name));
        at = put_raw(at, slice_make(line.base + begin, line.length - begin));
    }
    return (size_t)(at - block);
}

static void check_parsed(const struct http_head *head, const struct http_head *parsed) {
    ASSERT(parsed->field_count == head->field_count);
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i], *same = &parsed->fields[i];
        ASSERT(slice_equal(field->name, same->name) && slice_equal(field->value, same->value));
        ASSERT(field->id == same->id);
    }
    ASSERT(memcmp(parsed->present, head->present, sizeof head->present) == 0);
}

/* As HTTP/1.1 writes and reads it. */
static void check_head(const struct http_head *head, bool is_request) {
    static char text[4 * FIELDS_TEXT];
    struct http_head parsed;
    size_t length = (is_request ? http_head_write_request
                                : http_head_write_response)(head, text, sizeof text - 2);
    ASSERT(length <= sizeof text - 2);
    memcpy(text + length, "\r\n", 2);
    ssize_t used = (is_request ? http_head_parse_request : http_head_parse_response)(&parsed, text,
                                                                                     length + 2, 0);
    ASSERT(used == (ssize_t)length + 2);
    check_parsed(head, &parsed);
    ASSERT(!is_request ||
           (slice_equal(parsed.method, head->method) && slice_equal(parsed.target, head->target) &&
            parsed.method_id == head->method_id));
    ASSERT(is_request || parsed.status == head->status);
}

static void check_no_connection(const struct http_head *head) {
    ASSERT(!http_head_has(head, HTTP_CONNECTION) && !http_head_has(head, HTTP_KEEP_ALIVE));
    ASSERT(!http_head_has(head, HTTP_PROXY_CONNECTION) && !http_head_has(head, HTTP_UPGRADE));
    ASSERT(!http_head_has(head, HTTP_TRANSFER_ENCODING));
}

static void check_length(const struct http_head *head, const struct http2_meaning *meaning) {
    struct framing framing;
    const struct http_field *field = http_head_find(head, HTTP_CONTENT_LENGTH);
    ASSERT((field != NULL) == (meaning->content_length >= 0));
    if (field == NULL)
        return;
    ASSERT(http_head_find_next(head, HTTP_CONTENT_LENGTH, field) == NULL);
    ASSERT(framing_of_request(&framing, head));
    ASSERT(head->method_id == HTTP_METHOD_CONNECT ||
           framing.length == (uint64_t)meaning->content_length);
}

static void check_request(struct http_head *head, const struct http2_meaning *meaning) {
    struct url url;
    const struct http_field *host = http_head_find(head, HTTP_HOST);
    ASSERT(host != NULL && http_head_find_next(head, HTTP_HOST, host) == NULL);
    ASSERT(slice_equal(host->value, meaning->authority));
    ASSERT(head->version == 20);
    check_head(head, true);
    ASSERT(http2_request_make_absolute(&list, head, meaning));
    check_head(head, true);
    if (head->method_id == HTTP_METHOD_CONNECT) {
        ASSERT(url_parse_authority(&url, head->target, 0));
        return;
    }
    const struct url_scheme *scheme = url_scheme_find(meaning->scheme);
    if (scheme == NULL || !url_parse(&url, head->target))
        return; /* another scheme, or port 0 */
    struct slice path = meaning->path.base[0] == '/' ? meaning->path : SLICE("");
    ASSERT(slice_equal(url.path_query, path));
}

/* A head that is refused is empty. */
static void check_refused(const struct http_head *head, enum http2_fields_result result,
                          const struct http2_meaning *meaning) {
    ASSERT((result == HTTP2_FIELDS_MALFORMED) == (meaning->error != NULL));
    ASSERT(head->field_count == 0 && head->method.length == 0 && head->target.length == 0);
}

static void check_message(struct slice kind) {
    struct http_head head;
    struct http2_meaning meaning;
    enum http2_fields_result result;
    bool is_request = slice_starts_with(kind, SLICE("request"));
    bool is_response = slice_starts_with(kind, SLICE("response"));
    if (is_request)
        result = http2_fields_to_request(&list, kind.length > strlen("request"), &head, &meaning);
    else if (is_response)
        result = http2_fields_to_response(&list, &head, &meaning);
    else
        result = http2_fields_to_trailers(&list, kind.length > strlen("trailers"), &head, &meaning);
    if (result != HTTP2_FIELDS_GOOD) {
        check_refused(&head, result, &meaning);
        return;
    }
    ASSERT(!list.is_too_large && meaning.error == NULL && head.field_count <= HTTP_FIELDS_MAX);
    check_no_connection(&head);
    check_length(&head, &meaning);
    if (is_request)
        check_request(&head, &meaning);
    if (!is_request && !is_response)
        head.status = 200;
    if (!is_request)
        check_head(&head, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char block[FIELDS_TEXT], text[FIELDS_TEXT];
    static struct hpack_field fields[FIELDS_MOST];
    struct hpack_decoder decoder;
    struct lines lines = lines_of(data, size);
    struct slice kind = lines_next(&lines);
    size_t length = put_block(&lines, block, sizeof block);
    hpack_decoder_init(&decoder, HPACK_TABLE_DEFAULT);
    hpack_list_init(&list, text, sizeof text, fields, FIELDS_MOST, FIELDS_SIZE);
    ASSERT(hpack_decode(&decoder, slice_make(block, length), &list) == HPACK_GOOD);
    hpack_decoder_release(&decoder);
    check_message(kind);
    return 0;
}
