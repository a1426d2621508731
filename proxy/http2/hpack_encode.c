#include "http2/hpack_encode.h"

#include "base/assert.h"
#include "http2/hpack_static.h"

/* The first bytes of the kinds of literals (RFC 7541 §6.2.2, §6.2.3), and of an entry (§6.1). */
enum { LITERAL = 0x00, LITERAL_NEVER_INDEXED = 0x10, ENTRY = 0x80, INDEX_MASK = 0x0f };

/* The entries of the static table that are named here. */
enum {
    STATIC_AUTHORITY = 1,
    STATIC_METHOD_GET = 2,
    STATIC_METHOD_POST = 3,
    STATIC_PATH = 4,
    STATIC_SCHEME_HTTP = 6,
    STATIC_SCHEME_HTTPS = 7,
    STATIC_STATUS_200 = 8,
    STATIC_AUTHORIZATION = 23,
    STATIC_COOKIE = 32,
    STATIC_PROXY_AUTHORIZATION = 49,
    STATIC_SET_COOKIE = 55,
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

static inline bool hpack_is_secret(unsigned index) {
    return index == STATIC_AUTHORIZATION || index == STATIC_COOKIE ||
           index == STATIC_PROXY_AUTHORIZATION || index == STATIC_SET_COOKIE;
}

static inline char *put_named(char *at, unsigned index, struct slice value) {
    unsigned kind = hpack_is_secret(index) ? LITERAL_NEVER_INDEXED : LITERAL;
    return put_string(hpack_put_prefixed(at, kind, INDEX_MASK, index), value);
}

static inline char *put_unnamed(char *at, struct slice name, struct slice value) {
    *at++ = LITERAL;
    at = hpack_put_prefixed(at, 0, 0x7f, name.length);
    return put_string(slice_put_lower(at, name), value);
}

static inline char *put_indexed(char *at, unsigned index) {
    *at++ = (char)(ENTRY | index);
    return at;
}

char *hpack_put_status(char *at, unsigned status) {
    char digits[3] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10),
                      (char)('0' + status % 10)};
    struct slice text = slice_make(digits, sizeof digits);
    for (unsigned i = STATIC_STATUS_200; hpack_static[i].pseudo == HPACK_STATUS; i++)
        if (memcmp(hpack_static[i].value.base, digits, sizeof digits) == 0)
            return put_indexed(at, i);
    return put_named(at, STATIC_STATUS_200, text);
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
    return put_unnamed(at, SLICE(":protocol"), protocol);
}

static inline char *put_found(char *at, unsigned index, struct slice name, struct slice value) {
    if (index == HPACK_NOT_SENT)
        return at;
    return index == 0 ? put_unnamed(at, name, value) : put_named(at, index, value);
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

/* Lines that are not of the grammar end the work: they come from our own memory, but maybe from a
 * disk. */
char *hpack_put_lines(char *at, struct slice lines) {
    const char *begin = lines.base, *end = begin + lines.length;
    while (begin < end) {
        const char *line_end = memchr(begin, '\r', (size_t)(end - begin));
        const char *colon =
            line_end == NULL ? NULL : memchr(begin, ':', (size_t)(line_end - begin));
        if (colon == NULL)
            break;
        struct slice value = slice_trim(slice_make(colon + 1, (size_t)(line_end - colon) - 1));
        at = hpack_put_field(at, slice_make(begin, (size_t)(colon - begin)), value);
        begin = line_end + 2;
    }
    return at;
}

char *hpack_put_response_text(char *at, struct slice text) {
    enum { STATUS_AT = 9, STATUS_END = 12 }; /* in "HTTP/1.1 200" */
    const char *status = text.base + STATUS_AT;
    const char *line_end = text.length < STATUS_END ? NULL : memchr(text.base, '\n', text.length);
    ASSERT(line_end != NULL);
    at = hpack_put_status(
        at, (unsigned)((status[0] - '0') * 100 + (status[1] - '0') * 10 + (status[2] - '0')));
    size_t used = (size_t)(line_end + 1 - text.base);
    return hpack_put_lines(at, slice_make(text.base + used, text.length - used));
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
