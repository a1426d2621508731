#include "http2/fields.h"

#include "http/bytes.h"
#include "http/url.h"

enum message_kind { KIND_REQUEST, KIND_RESPONSE, KIND_TRAILERS };

enum { BIT_METHOD = 1 << HPACK_METHOD, BIT_SCHEME = 1 << HPACK_SCHEME, BIT_PATH = 1 << HPACK_PATH };

/* The pseudo fields that each kind may have, as bits. */
static const unsigned pseudo_allowed[] = {
    [KIND_REQUEST] =
        BIT_METHOD | BIT_SCHEME | BIT_PATH | 1 << HPACK_AUTHORITY | 1 << HPACK_PROTOCOL,
    [KIND_RESPONSE] = 1 << HPACK_STATUS,
    [KIND_TRAILERS] = 0,
};

/* What is known when all fields of a list have been read. */
struct fields_scan {
    enum message_kind kind;
    bool of_response;
    struct http_head *head;
    struct http2_meaning *meaning;
    unsigned seen; /* pseudo fields, as bits */
    bool regular;  /* a field that is none has come */
    struct slice pseudo[HPACK_UNKNOWN];
    struct slice host, length;
    unsigned cookies, first_cookie; /* their number, and the place of the first in the head */
};

static enum http2_fields_result malformed(struct http2_meaning *meaning, const char *error) {
    meaning->error = error;
    return HTTP2_FIELDS_MALFORMED;
}

static enum http2_fields_result not_clean(struct http2_meaning *meaning,
                                          const struct hpack_field *field) {
    const char *at = field->name.base, *end = at + field->name.length;
    if (field->pseudo == HPACK_NONE) {
        if (at == end)
            return malformed(meaning, "a field has no name");
        for (; at < end; at++) {
            if (*at >= 'A' && *at <= 'Z')
                return malformed(meaning, "a field name has a letter in upper case");
            if (!bytes_is(*at, BYTES_TOKEN))
                return malformed(meaning, "a field name has a byte that names don't have");
        }
    }
    return malformed(meaning,
                     "a field value has a control byte, or white space at its beginning or end");
}

/* "A field value MUST NOT start or end with an ASCII whitespace character" (§8.2.1). Responses with
 * such values are common enough for browsers to take them, so the white space is removed, as it is
 * in HTTP/1.1 (RFC 9110 §5.5). A request is refused. */
static bool is_clean_when_trimmed(const struct fields_scan *scan, struct hpack_field *field) {
    field->value = slice_trim(field->value);
    return scan->of_response && hpack_is_clean(field->name, field->value);
}

static enum http2_fields_result note_pseudo(struct fields_scan *scan,
                                            const struct hpack_field *field) {
    unsigned bit = 1u << field->pseudo;
    if (!(bit & pseudo_allowed[scan->kind]))
        return malformed(scan->meaning, scan->kind == KIND_TRAILERS
                                            ? "trailers have a pseudo-header field"
                                            : "a pseudo-header field is none of this message");
    if (scan->regular)
        return malformed(scan->meaning, "a pseudo-header field stands behind other fields");
    if (scan->seen & bit)
        return malformed(scan->meaning, "a pseudo-header field occurs twice");
    if (!field->is_clean)
        return not_clean(scan->meaning, field);
    scan->seen |= bit;
    scan->pseudo[field->pseudo] = field->value;
    return HTTP2_FIELDS_GOOD;
}

static enum http2_fields_result fields_put(struct fields_scan *scan,
                                           const struct hpack_field *field) {
    struct http_head *head = scan->head;
    if (head->field_count >= HTTP_FIELDS_MAX)
        return HTTP2_FIELDS_TOO_LARGE;
    head->fields[head->field_count++] = (struct http_field){field->name, field->value, field->id};
    http_head_note(head, field->id);
    return HTTP2_FIELDS_GOOD;
}

static enum http2_fields_result note_length(struct fields_scan *scan,
                                            const struct hpack_field *field) {
    uint64_t length;
    if (scan->length.base != NULL)
        return slice_equal(scan->length, field->value)
                   ? HTTP2_FIELDS_GOOD
                   : malformed(scan->meaning, "content-length values that differ");
    if (!slice_to_uint64(field->value, &length) || length > INT64_MAX)
        return malformed(scan->meaning, "content-length is not a number of bytes");
    scan->length = field->value;
    scan->meaning->content_length = (int64_t)length;
    return fields_put(scan, field);
}

/* "The only exception to this is the TE header field, which MAY be present in an HTTP/2 request;
 * when it is, it MUST NOT contain any value other than 'trailers'" (§8.2.2). */
static enum http2_fields_result note_te(struct fields_scan *scan, const struct hpack_field *field) {
    if (scan->kind != KIND_REQUEST || !slice_equal_nocase(field->value, SLICE("trailers")))
        return malformed(scan->meaning, "TE has a value other than trailers");
    scan->meaning->takes_trailers = true;
    return fields_put(scan, field);
}

/* Host has its place at the front of the head. */
static enum http2_fields_result note_host(struct fields_scan *scan,
                                          const struct hpack_field *field) {
    if (scan->kind != KIND_REQUEST)
        return fields_put(scan, field);
    if (scan->host.base != NULL)
        return malformed(scan->meaning, "the request has two Host fields");
    scan->host = field->value;
    return HTTP2_FIELDS_GOOD;
}

static enum http2_fields_result note_cookie(struct fields_scan *scan,
                                            const struct hpack_field *field) {
    if (scan->kind == KIND_REQUEST && scan->cookies++ > 0)
        return HTTP2_FIELDS_GOOD;
    scan->first_cookie = scan->head->field_count;
    return fields_put(scan, field);
}

static enum http2_fields_result note_regular(struct fields_scan *scan,
                                             const struct hpack_field *field) {
    switch ((enum http_name)field->id) {
    case HTTP_CONNECTION:
    case HTTP_KEEP_ALIVE:
    case HTTP_PROXY_CONNECTION:
    case HTTP_TRANSFER_ENCODING:
    case HTTP_UPGRADE:
        return malformed(scan->meaning, "the message has a field that belongs to a connection "
                                        "(RFC 9113 section 8.2.2)");
    case HTTP_CONTENT_LENGTH: return note_length(scan, field);
    case HTTP_COOKIE: return note_cookie(scan, field);
    case HTTP_HOST: return note_host(scan, field);
    case HTTP_TE: return note_te(scan, field);
    default: return fields_put(scan, field);
    }
}

static inline enum http2_fields_result fields_note(struct fields_scan *scan,
                                                   const struct hpack_field *field) {
    scan->regular = true;
    if (field->is_clean)
        return note_regular(scan, field);
    struct hpack_field trimmed = *field;
    if (is_clean_when_trimmed(scan, &trimmed))
        return note_regular(scan, &trimmed);
    return not_clean(scan->meaning, field);
}

static enum http2_fields_result scan_fields(struct fields_scan *scan,
                                            const struct hpack_list *list) {
    scan->head->version = 20;
    *scan->meaning = (struct http2_meaning){.content_length = -1};
    if (list->is_too_large)
        return HTTP2_FIELDS_TOO_LARGE;
    for (unsigned i = 0; i < list->count; i++) {
        const struct hpack_field *field = &list->fields[i];
        enum http2_fields_result result =
            field->pseudo != HPACK_NONE ? note_pseudo(scan, field) : fields_note(scan, field);
        if (result != HTTP2_FIELDS_GOOD)
            return result;
    }
    return HTTP2_FIELDS_GOOD;
}

static bool list_has_room(const struct hpack_list *list, size_t bytes) {
    return list->text_room - list->text_used >= bytes;
}

/* "If there are multiple Cookie header fields after decompression, these MUST be concatenated into
 * a single octet string using the two-octet delimiter of 0x3b, 0x20" (§8.2.3). Empty ones are left
 * out, since a value must not end with a blank. */
static bool join_cookies(const struct fields_scan *scan, struct hpack_list *list) {
    static const struct slice between = {"; ", 2};
    size_t size = (scan->cookies - 1) * between.length;
    for (unsigned i = 0; i < list->count; i++)
        if (list->fields[i].id == HTTP_COOKIE)
            size += list->fields[i].value.length;
    if (!list_has_room(list, size))
        return false;
    char *begin = list->text + list->text_used, *at = begin;
    unsigned joined = 0;
    for (unsigned i = 0; i < list->count; i++) {
        if (list->fields[i].id != HTTP_COOKIE || list->fields[i].value.length == 0)
            continue;
        at = joined++ > 0 ? slice_put(at, between) : at;
        at = slice_put(at, list->fields[i].value);
    }
    list->text_used += (size_t)(at - begin);
    scan->head->fields[scan->first_cookie].value = slice_make(begin, (size_t)(at - begin));
    return true;
}

static bool is_good_path(struct slice path, const struct http_head *head) {
    if (path.length == 0)
        return false;
    const char *end = path.base + path.length;
    if (path.base[0] != '/')
        return head->method_id == HTTP_METHOD_OPTIONS && slice_equal(path, SLICE("*"));
    return bytes_skip(path.base, end, BYTES_TARGET) == end &&
           memchr(path.base, '#', path.length) == NULL;
}

static bool is_token(struct slice text) {
    return text.length > 0 &&
           bytes_skip_token(text.base, text.base + text.length) == text.base + text.length;
}

/* Equal as bytes mostly; "example.com" and "Example.com:443" are equal too. */
static bool is_same_host(struct slice scheme, struct slice authority, struct slice host) {
    if (slice_equal(authority, host))
        return true;
    const struct url_scheme *known = url_scheme_find(scheme);
    uint16_t port = known == NULL ? 0 : known->port;
    struct url a, b;
    return url_parse_authority(&a, authority, port) && url_parse_authority(&b, host, port) &&
           a.port == b.port && a.host_is_ipv6 == b.host_is_ipv6 &&
           slice_equal_nocase(a.host, b.host);
}

/* ":authority" and Host (§8.3.1). The head gets one Host. */
static enum http2_fields_result settle_authority(struct fields_scan *scan) {
    struct http2_meaning *meaning = scan->meaning;
    bool has_authority = scan->seen & 1 << HPACK_AUTHORITY;
    struct url url;
    meaning->authority = has_authority ? scan->pseudo[HPACK_AUTHORITY] : scan->host;
    if (meaning->authority.length == 0)
        return malformed(meaning, "the request names no host");
    if (!url_parse_authority(&url, meaning->authority, 0))
        return malformed(meaning, "the authority is not a host with or without a port");
    if (has_authority && scan->host.base != NULL &&
        !is_same_host(meaning->scheme, meaning->authority, scan->host))
        return malformed(meaning, "Host differs from :authority");
    scan->head->fields[0] =
        (struct http_field){http_name_text(HTTP_HOST), meaning->authority, HTTP_HOST};
    http_head_note(scan->head, HTTP_HOST);
    return HTTP2_FIELDS_GOOD;
}

/* §8.5: "The ':scheme' and ':path' pseudo-header fields MUST be omitted." */
static enum http2_fields_result settle_connect(struct fields_scan *scan) {
    if (scan->seen & (BIT_SCHEME | BIT_PATH))
        return malformed(scan->meaning, "a CONNECT has a :scheme or a :path");
    if (!(scan->seen & 1 << HPACK_AUTHORITY))
        return malformed(scan->meaning, "a CONNECT has no :authority");
    if (scan->meaning->content_length > 0)
        return malformed(scan->meaning, "a CONNECT has a content-length");
    scan->head->target = scan->pseudo[HPACK_AUTHORITY];
    return settle_authority(scan);
}

static enum http2_fields_result settle_request(struct fields_scan *scan) {
    struct http2_meaning *meaning = scan->meaning;
    meaning->scheme = scan->pseudo[HPACK_SCHEME];
    meaning->path = scan->head->target = scan->pseudo[HPACK_PATH];
    if (!url_scheme_is_good(meaning->scheme))
        return malformed(meaning, "the request has no valid :scheme");
    if (!is_good_path(meaning->path, scan->head))
        return malformed(meaning, "the request has no valid :path");
    return settle_authority(scan);
}

/* RFC 8441 §4: with ":protocol", a CONNECT has scheme, path and authority like other requests. */
static enum http2_fields_result settle_extended_connect(struct fields_scan *scan, bool enabled) {
    struct http2_meaning *meaning = scan->meaning;
    if (!enabled || scan->head->method_id != HTTP_METHOD_CONNECT)
        return malformed(meaning, "the request may not have a :protocol");
    meaning->protocol = scan->pseudo[HPACK_PROTOCOL];
    if (!is_token(meaning->protocol))
        return malformed(meaning, "the request has no valid :protocol");
    scan->head->method = SLICE("GET");
    scan->head->method_id = HTTP_METHOD_GET;
    return settle_request(scan);
}

static enum http2_fields_result
fields_make_request(struct fields_scan *scan, struct hpack_list *list, bool extended_connect) {
    struct http_head *head = scan->head;
    head->field_count = 1; /* Host */
    enum http2_fields_result result = scan_fields(scan, list);
    if (result != HTTP2_FIELDS_GOOD)
        return result;
    head->method = scan->pseudo[HPACK_METHOD];
    head->method_id = http_method_lookup(head->method);
    if (!is_token(head->method))
        return malformed(scan->meaning, "the request has no valid :method");
    if (scan->seen & 1 << HPACK_PROTOCOL)
        result = settle_extended_connect(scan, extended_connect);
    else if (head->method_id == HTTP_METHOD_CONNECT)
        result = settle_connect(scan);
    else
        result = settle_request(scan);
    if (result == HTTP2_FIELDS_GOOD && scan->cookies > 1 && !join_cookies(scan, list))
        return HTTP2_FIELDS_TOO_LARGE;
    return result;
}

/* Nobody gets a head that is not whole. */
static enum http2_fields_result fields_result(struct http_head *head,
                                              enum http2_fields_result result) {
    if (result != HTTP2_FIELDS_GOOD) {
        http_head_init(head);
        head->version = 20;
    }
    return result;
}

enum http2_fields_result http2_fields_to_request(struct hpack_list *list, bool extended_connect,
                                                 struct http_head *head,
                                                 struct http2_meaning *meaning) {
    struct fields_scan scan = {.kind = KIND_REQUEST, .head = head, .meaning = meaning};
    http_head_init(head);
    return fields_result(head, fields_make_request(&scan, list, extended_connect));
}

bool http2_request_make_absolute(struct hpack_list *list, struct http_head *head,
                                 const struct http2_meaning *meaning) {
    static const struct slice slashes = {"://", 3};
    if (meaning->scheme.length == 0)
        return true;
    struct slice path = meaning->path.base[0] == '/' ? meaning->path : SLICE("");
    size_t size = meaning->scheme.length + slashes.length + meaning->authority.length + path.length;
    if (!list_has_room(list, size))
        return false;
    char *begin = list->text + list->text_used;
    char *at = slice_put(slice_put(begin, meaning->scheme), slashes);
    slice_put(slice_put(at, meaning->authority), path);
    list->text_used += size;
    head->target = slice_make(begin, size);
    return true;
}

static unsigned fields_status(struct slice text) {
    uint64_t status;
    return text.length == 3 && slice_to_uint64(text, &status) ? (unsigned)status : 0;
}

static enum http2_fields_result fields_make_response(struct fields_scan *scan,
                                                     const struct hpack_list *list) {
    struct http_head *head = scan->head;
    struct http2_meaning *meaning = scan->meaning;
    enum http2_fields_result result = scan_fields(scan, list);
    if (result != HTTP2_FIELDS_GOOD)
        return result;
    head->status = fields_status(scan->pseudo[HPACK_STATUS]);
    if (head->status < 100)
        return malformed(meaning, "the response has no valid :status");
    if (head->status == 101)
        return malformed(meaning, "the response has the status 101, which HTTP/2 does not have");
    return HTTP2_FIELDS_GOOD;
}

enum http2_fields_result http2_fields_to_response(const struct hpack_list *list,
                                                  struct http_head *head,
                                                  struct http2_meaning *meaning) {
    struct fields_scan scan = {
        .kind = KIND_RESPONSE, .of_response = true, .head = head, .meaning = meaning};
    http_head_init(head);
    return fields_result(head, fields_make_response(&scan, list));
}

enum http2_fields_result http2_fields_to_trailers(const struct hpack_list *list, bool of_response,
                                                  struct http_head *head,
                                                  struct http2_meaning *meaning) {
    struct fields_scan scan = {
        .kind = KIND_TRAILERS, .of_response = of_response, .head = head, .meaning = meaning};
    http_head_init(head);
    return fields_result(head, scan_fields(&scan, list));
}
