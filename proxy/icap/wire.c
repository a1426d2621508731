#include "icap/wire.h"

#include "base/assert.h"

#include <stdio.h>

/* "name=offset"; false when it is not of that form. */
static bool split(struct slice element, struct slice *name, uint64_t *offset) {
    const char *equals = memchr(element.base, '=', element.length);
    if (equals == NULL)
        return false;
    *name = slice_trim(slice_make(element.base, (size_t)(equals - element.base)));
    struct slice number =
        slice_make(equals + 1, element.length - (size_t)(equals + 1 - element.base));
    return slice_to_uint64(slice_trim(number), offset);
}

bool icap_encapsulated_parse(struct icap_encapsulated *parts, struct slice value, size_t most) {
    struct slice element, name;
    uint64_t offset, last = 0;
    bool first = true, body = false;
    memset(parts, 0, sizeof *parts);
    while (slice_next_element(&value, &element)) {
        if (body || !split(element, &name, &offset) || offset > most)
            return false;
        if (first ? offset != 0 : offset <= last)
            return false;
        if (slice_equal_nocase(name, SLICE("req-hdr")) && first) {
            parts->has_request = true;
        } else if (slice_equal_nocase(name, SLICE("res-hdr")) && !parts->has_response) {
            parts->has_response = true;
            parts->response_at = (size_t)offset;
        } else if (slice_equal_nocase(name, SLICE("req-body"))) {
            body = parts->has_body = parts->body_is_request = true;
        } else if (slice_equal_nocase(name, SLICE("res-body"))) {
            body = parts->has_body = true;
        } else if (slice_equal_nocase(name, SLICE("opt-body")) ||
                   slice_equal_nocase(name, SLICE("null-body"))) {
            body = true;
        } else {
            return false;
        }
        parts->body_at = (size_t)offset;
        last = offset;
        first = false;
    }
    return body;
}

/* RFC 4648 §4. */
static size_t write_base64(char *out, const char *text, size_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = out;
    for (size_t i = 0; i < length; i += 3) {
        size_t count = length - i < 3 ? length - i : 3;
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < count ? (unsigned char)text[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *at++ = j <= count ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    return (size_t)(at - out);
}

const char *icap_credentials_write(const char *credentials, char field[ICAP_CREDENTIALS_FIELD]) {
    if (credentials == NULL)
        return "";
    size_t length = strlen(credentials);
    ASSERT(length / 3 * 4 + 50 < ICAP_CREDENTIALS_FIELD);
    int begun = snprintf(field, ICAP_CREDENTIALS_FIELD, "Proxy-Authorization: Basic ");
    char *end = field + begun + write_base64(field + begun, credentials, length);
    memcpy(end, "\r\n", 3);
    return field;
}
