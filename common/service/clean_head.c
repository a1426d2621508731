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

static bool clean_is_same(struct slice a, struct slice b) {
    return a.base == b.base && a.length == b.length;
}

/* Is the field one of those from *at on? A service seldom removes many that follow one another. */
static bool clean_was_there(const struct http_field *field, const struct http_head *before,
                            unsigned *at) {
    enum { REMOVED_MOST = 4 };
    for (unsigned i = *at; i < before->field_count && i <= *at + REMOVED_MOST; i++)
        if (clean_is_same(field->name, before->fields[i].name) &&
            clean_is_same(field->value, before->fields[i].value)) {
            *at = i + 1;
            return true;
        }
    return false;
}

static bool clean_field(const struct http_field *field) {
    return field->name.length > 0 && clean_is_of(field->name, BYTES_TOKEN) &&
           clean_is_text(field->value);
}

static bool clean_fields(const struct http_head *head, const struct http_head *before) {
    unsigned at = 0;
    for (unsigned i = 0; i < head->field_count; i++)
        if (!clean_was_there(&head->fields[i], before, &at) && !clean_field(&head->fields[i]))
            return false;
    return true;
}

static bool clean_start(const struct http_head *head, const struct http_head *before,
                        bool response) {
    if (response)
        return head->status <= 999 &&
               (clean_is_same(head->reason, before->reason) || clean_is_text(head->reason));
    return head->method.length > 0 && head->target.length > 0 &&
           (clean_is_same(head->method, before->method) ||
            clean_is_of(head->method, BYTES_TOKEN)) &&
           (clean_is_same(head->target, before->target) || clean_is_of(head->target, BYTES_TARGET));
}

bool clean_head(const struct http_head *head, const struct http_head *before, bool response) {
    static const struct http_head nothing;
    if (before == NULL)
        before = &nothing;
    return clean_start(head, before, response) && clean_fields(head, before);
}
