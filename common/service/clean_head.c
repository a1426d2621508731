#include "service/clean_head.h"

#include "http/bytes.h"

static bool clean_is_of(struct slice bytes, const unsigned class) {
    const char *at = bytes.base, *end = bytes.base + bytes.length;
    while (at < end && bytes_is(*at, class))
        at++;
    return at == end;
}

static bool clean_is_text(struct slice bytes) {
    const char *end = bytes.base + bytes.length;
    return bytes.length == 0 || bytes_skip(bytes.base, end, BYTES_TEXT) == end;
}

static bool clean_fields_are_clean(const struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (field->name.length == 0 || !clean_is_of(field->name, BYTES_TOKEN) ||
            !clean_is_text(field->value))
            return false;
    }
    return true;
}

static bool clean_start_is_clean(const struct http_head *head, bool response) {
    if (response)
        return head->status <= 999 && clean_is_text(head->reason);
    return head->method.length > 0 && clean_is_of(head->method, BYTES_TOKEN) &&
           head->target.length > 0 && clean_is_of(head->target, BYTES_TARGET);
}

bool clean_head(const struct http_head *head, bool response) {
    return clean_start_is_clean(head, response) && clean_fields_are_clean(head);
}
