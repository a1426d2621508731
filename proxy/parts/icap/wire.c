#include "icap/wire.h"

#include "http/head_parser.h"

ssize_t icap_head_parse(struct http_head *head, char *bytes, size_t length) {
    ssize_t used = http_head_parse_icap_response(head, bytes, length, 0);
    if (used < 0 && http_head_unfold(bytes, length))
        used = http_head_parse_icap_response(head, bytes, length, 0);
    return used;
}

/* "name=offset"; false when it is not of that form. */
static bool wire_split(struct slice element, struct slice *name, uint64_t *offset) {
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
        if (body || !wire_split(element, &name, &offset) || offset > most)
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
        } else if (slice_equal_nocase(name, SLICE("null-body"))) {
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
