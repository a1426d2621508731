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

static inline char *put_found(char *at, unsigned index, struct slice name, struct slice value) {
    if (index == HPACK_NOT_SENT)
        return at;
    return put_string(hpack_put_literal_name(at, index, name), value);
}

char *hpack_put_field(char *at, struct slice name, struct slice value) {
    return put_found(at, hpack_static_index(name), name, value);
}

/* A field of a name that is known, not HTTP_OTHER. */
static char *hpack_put_known(char *at, enum http_name id, struct slice value) {
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

/* Field lines of HTTP/1.1 as HPACK: the head of a stored response is written so for each hit. */

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Lines that are not of the grammar end the work: NULL. */
static const char *put_line_slowly(char **at, const char *line, const char *end) {
    const char *line_end = memchr(line, '\r', (size_t)(end - line));
    const char *colon = line_end == NULL ? NULL : memchr(line, ':', (size_t)(line_end - line));
    if (colon == NULL)
        return NULL;
    struct slice value = slice_trim(slice_make(colon + 1, (size_t)(line_end - colon) - 1));
    *at = hpack_put_field(*at, slice_make(line, (size_t)(colon - line)), value);
    return line_end + 2;
}

#ifdef __SSE2__

enum { CHUNK = 16, VALUE_MOST = 126 };

/* A bit for each of sixteen bytes, set when it is that character. */
static inline unsigned find_in_chunk(__m128i chunk, char c) {
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(chunk, _mm_set1_epi8(c)));
}

/* Bit 0x20 makes letters lower-case, and makes no other byte of a token one of those that names of
 * the table consist of. */
static inline __m128i load_lower(const char *at) {
    return _mm_or_si128(_mm_loadu_si128((const __m128i *)at), _mm_set1_epi8(0x20));
}

static inline unsigned differing(__m128i lower, const char *of_slot) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)of_slot);
    return ~(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(lower, bytes));
}

/* The slot of a name behind whose beginning there are at least CHUNK bytes; NULL: it has none. */
static inline const struct hpack_static_name *find_name(const char *name, size_t length) {
    const struct hpack_static_name *slot = hpack_static_slot(name, length);
    if (slot->length != length || (differing(load_lower(name), slot->front) & slot->front_bits))
        return NULL;
    if (length > CHUNK && differing(load_lower(name + length - CHUNK), slot->back) & 0xffff)
        return NULL;
    return slot;
}

static inline char *lines_put_name(char *at, const struct hpack_static_name *slot, const char *name,
                                   size_t length) {
    if (slot == NULL)
        return hpack_put_literal_name(at, 0, slice_make(name, length));
    memcpy(at, slot->literal, sizeof slot->literal);
    return at + slot->literal_length;
}

/* The place of the colon in the first two chunks; 0: there is none, or no name. */
static inline size_t find_colon(const char *line) {
    unsigned found = find_in_chunk(_mm_loadu_si128((const __m128i *)line), ':');
    if (found != 0)
        return (size_t)__builtin_ctz(found);
    found = find_in_chunk(_mm_loadu_si128((const __m128i *)(line + CHUNK)), ':');
    return found == 0 ? 0 : CHUNK + (size_t)__builtin_ctz(found);
}

/* Copies a value up to the CR behind it. Returns its length; VALUE_MOST + 1: it is longer, or the
 * text has too few bytes. */
static inline size_t copy_value(char *to, const char *value, const char *end) {
    for (size_t done = 0; done < VALUE_MOST && end - value - (ptrdiff_t)done >= CHUNK;
         done += CHUNK) {
        __m128i chunk = _mm_loadu_si128((const __m128i *)(value + done));
        unsigned stop = find_in_chunk(chunk, '\r');
        _mm_storeu_si128((__m128i *)(to + done), chunk);
        if (stop != 0)
            return done + (size_t)__builtin_ctz(stop);
    }
    return VALUE_MOST + 1;
}

/* Writes a line "Name: value" with a short name and with 1 to VALUE_MOST bytes of value. NULL: it is
 * no such line. */
static inline const char *put_line_fast(char **atp, const char *line, const char *end) {
    if (end - line < 2 * CHUNK)
        return NULL;
    size_t name = find_colon(line);
    const char *value = line + name + 2;
    if (name == 0 || value >= end || value[-1] != ' ')
        return NULL;
    const struct hpack_static_name *slot = find_name(line, name);
    if (slot != NULL && slot->literal_length == 0)
        return NULL;
    char *at = lines_put_name(*atp, slot, line, name);
    size_t length = copy_value(at + 1, value, end);
    /* white space at an end, or no value at all */
    if (length > VALUE_MOST || (unsigned char)value[0] <= ' ' || (unsigned char)at[length] <= ' ')
        return NULL;
    *at = (char)length;
    *atp = at + 1 + length;
    return value + length + 2;
}

/* The last lines, of less than twice CHUNK bytes, with so many behind them. */
static inline const char *put_last_line(char **atp, const char *line, const char *end) {
    char bytes[4 * CHUNK] = {0};
    size_t length = (size_t)(end - line);
    if (length >= 2 * CHUNK)
        return NULL;
    memcpy(bytes, line, length);
    const char *next = put_line_fast(atp, bytes, bytes + sizeof bytes);
    return next == NULL ? NULL : line + (next - bytes);
}

#else

static inline const char *put_line_fast(char **atp, const char *line, const char *end) {
    return NULL;
}

static inline const char *put_last_line(char **atp, const char *line, const char *end) {
    return NULL;
}

#endif

char *hpack_put_lines(char *at, struct slice lines) {
    if (lines.length == 0)
        return at;
    const char *line = lines.base, *end = line + lines.length, *next;
    while (line < end) {
        while ((next = put_line_fast(&at, line, end)) != NULL)
            line = next;
        next = put_last_line(&at, line, end);
        if (next == NULL)
            next = put_line_slowly(&at, line, end);
        if (next == NULL)
            break;
        line = next;
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
