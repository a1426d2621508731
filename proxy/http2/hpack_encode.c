#include "http2/hpack_encode.h"

#include "base/assert.h"
#include "http2/hpack_static.h"

/* The first bytes of a literal that is never indexed (RFC 7541 §6.2.3), and of an entry (§6.1). */
enum { LITERAL = 0x10, ENTRY = 0x80, INDEX_MASK = 0x0f };

/* The entries of the static table that are named here. */
enum {
    STATIC_AUTHORITY = 1,
    STATIC_METHOD_GET = 2,
    STATIC_METHOD_POST = 3,
    STATIC_PATH = 4,
    STATIC_SCHEME_HTTP = 6,
    STATIC_SCHEME_HTTPS = 7,
    STATIC_STATUS_200 = 8,
    STATIC_STATUS_204 = 9,
    STATIC_STATUS_206 = 10,
    STATIC_STATUS_304 = 11,
    STATIC_STATUS_400 = 12,
    STATIC_STATUS_404 = 13,
    STATIC_STATUS_500 = 14,
};

static char *put_long_number(char *at, unsigned kind, unsigned mask, size_t number) {
    *at++ = (char)(kind | mask);
    for (number -= mask; number >= 0x80; number >>= 7)
        *at++ = (char)(0x80 | (number & 0x7f));
    *at++ = (char)number;
    return at;
}

static inline char *hpack_put_prefixed(char *at, unsigned kind, unsigned mask, size_t number) {
    if (number >= mask)
        return put_long_number(at, kind, mask, number);
    *at++ = (char)(kind | number);
    return at;
}

static inline char *put_string(char *at, struct slice text) {
    return slice_put(hpack_put_prefixed(at, 0, 0x7f, text.length), text);
}

char *hpack_put_literal_name(char *at, unsigned index, struct slice name) {
    if (index > 0)
        return hpack_put_prefixed(at, LITERAL, INDEX_MASK, index);
    *at++ = LITERAL;
    at = hpack_put_prefixed(at, 0, 0x7f, name.length);
    return slice_put_lower(at, name);
}

static inline char *put_named(char *at, unsigned index, struct slice value) {
    return put_string(hpack_put_literal_name(at, index, SLICE("")), value);
}

static inline char *put_indexed(char *at, unsigned index) {
    *at++ = (char)(ENTRY | index);
    return at;
}

static unsigned index_of_status(unsigned status) {
    switch (status) {
    case 200: return STATIC_STATUS_200;
    case 204: return STATIC_STATUS_204;
    case 206: return STATIC_STATUS_206;
    case 304: return STATIC_STATUS_304;
    case 400: return STATIC_STATUS_400;
    case 404: return STATIC_STATUS_404;
    case 500: return STATIC_STATUS_500;
    default: return 0;
    }
}

char *hpack_put_status(char *at, unsigned status) {
    unsigned index = index_of_status(status);
    if (index > 0)
        return put_indexed(at, index);
    char digits[3] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10),
                      (char)('0' + status % 10)};
    return put_named(at, STATIC_STATUS_200, slice_make(digits, sizeof digits));
}

char *hpack_put_method(char *at, struct slice method) {
    if (slice_equal(method, SLICE("GET")))
        return put_indexed(at, STATIC_METHOD_GET);
    if (slice_equal(method, SLICE("POST")))
        return put_indexed(at, STATIC_METHOD_POST);
    return put_named(at, STATIC_METHOD_GET, method);
}

char *hpack_put_scheme(char *at, struct slice scheme) {
    if (slice_equal(scheme, SLICE("https")))
        return put_indexed(at, STATIC_SCHEME_HTTPS);
    if (slice_equal(scheme, SLICE("http")))
        return put_indexed(at, STATIC_SCHEME_HTTP);
    return put_named(at, STATIC_SCHEME_HTTP, scheme);
}

char *hpack_put_authority(char *at, struct slice authority) {
    return put_named(at, STATIC_AUTHORITY, authority);
}

char *hpack_put_path(char *at, struct slice path) {
    if (slice_equal(path, SLICE("/")))
        return put_indexed(at, STATIC_PATH);
    return put_named(at, STATIC_PATH, path);
}

char *hpack_put_protocol(char *at, struct slice protocol) {
    return put_string(hpack_put_literal_name(at, 0, SLICE(":protocol")), protocol);
}

static inline char *put_found(char *at, unsigned index, struct slice name, struct slice value) {
    if (index == HPACK_NOT_SENT)
        return at;
    return put_string(hpack_put_literal_name(at, index, name), value);
}

char *hpack_put_field(char *at, struct slice name, struct slice value) {
    return put_found(at, hpack_static_index(name), name, value);
}

char *hpack_put_known(char *at, enum http_name id, struct slice value) {
    return put_found(at, hpack_static_index_of(id), http_name_text(id), value);
}

char *hpack_put_number(char *at, enum http_name id, int64_t number) {
    char digits[SLICE_DIGITS];
    return hpack_put_known(at, id, slice_of_number(digits, number));
}

char *hpack_put_fields(char *at, const struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (field->id == HTTP_HOST)
            continue;
        unsigned index = field->id == HTTP_OTHER ? hpack_static_index(field->name)
                                                 : hpack_static_index_of(field->id);
        at = put_found(at, index, field->name, field->value);
    }
    return at;
}

size_t hpack_fields_room(const struct http_head *head) {
    size_t room = 0;
    for (unsigned i = 0; i < head->field_count; i++)
        room += HPACK_ROOM(head->fields[i].name.length + head->fields[i].value.length);
    return room;
}
