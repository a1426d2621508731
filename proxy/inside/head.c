#include "inside/head.h"

#include "http/bytes.h"
#include "http/framing.h"

static bool head_is_of(struct slice bytes, const unsigned class) {
    const char *at = bytes.base, *end = bytes.base + bytes.length;
    while (at < end && bytes_is(*at, class))
        at++;
    return at == end;
}

static bool head_is_text(struct slice bytes) {
    const char *end = bytes.base + bytes.length;
    return bytes.length == 0 || bytes_skip(bytes.base, end, BYTES_TEXT) == end;
}

static bool is_same_place(struct slice a, struct slice b) {
    return a.base == b.base && a.length == b.length;
}

static bool is_same_field(const struct http_field *a, const struct http_field *b) {
    return is_same_place(a->name, b->name) && is_same_place(a->value, b->value);
}

/* Is the field one of those from *at on? A service seldom removes many that follow one another. */
static bool was_there(const struct http_field *field, const struct http_head *before,
                      unsigned *at) {
    enum { REMOVED_MOST = 4 };
    for (unsigned i = *at; i < before->field_count && i <= *at + REMOVED_MOST; i++)
        if (is_same_field(field, &before->fields[i])) {
            *at = i + 1;
            return true;
        }
    return false;
}

static bool field_is_clean(const struct http_field *field) {
    return field->name.length > 0 && head_is_of(field->name, BYTES_TOKEN) &&
           head_is_text(field->value);
}

static bool fields_are_clean(const struct http_head *head, const struct http_head *before) {
    unsigned at = 0;
    for (unsigned i = 0; i < head->field_count; i++)
        if (!was_there(&head->fields[i], before, &at) && !field_is_clean(&head->fields[i]))
            return false;
    return true;
}

/* Others parse what is written of it, such as who takes it out of the memory of verdicts, and the fields
 * of the proxy itself need room behind it: those that frame the body as well. */
static bool head_fits(const struct http_head *head) {
    return head->field_count <= HTTP_FIELDS_MAX && http_head_size(head) <= INSIDE_HEAD_MAX;
}

static bool start_is_clean(const struct http_head *head, const struct http_head *before,
                           bool response) {
    if (response)
        return head->status <= 999 &&
               (is_same_place(head->reason, before->reason) || head_is_text(head->reason));
    return head->method.length > 0 && head->target.length > 0 &&
           (is_same_place(head->method, before->method) || head_is_of(head->method, BYTES_TOKEN)) &&
           (is_same_place(head->target, before->target) || head_is_of(head->target, BYTES_TARGET));
}

/* RFC 9112 §6.3: the method, HEAD or CONNECT, decides whether the response has a body. The client
 * goes by the method that it has sent. */
static bool head_decides_framing(enum http_method method) {
    return method == HTTP_METHOD_HEAD || method == HTTP_METHOD_CONNECT;
}

static bool changes_framing(const struct http_head *head, enum http_method before) {
    enum http_method after = http_method_lookup(head->method);
    return after != before && (head_decides_framing(before) || head_decides_framing(after));
}

const char inside_head_too_long[] = "the service made a head with more than 128 fields or 128 KB";

const char *inside_head_error(const struct http_head *head, const struct http_head *before,
                              bool response, enum http_method method) {
    static const struct http_head nothing;
    struct framing framing;
    if (before == NULL)
        before = &nothing;
    if (!start_is_clean(head, before, response) || !fields_are_clean(head, before))
        return "the service made a head with bytes that HTTP does not allow there";
    if (!head_fits(head))
        return inside_head_too_long;
    if (response && head->status < 200)
        return "the service made a response that a client would not take for the final one";
    if (!response && changes_framing(head, method))
        return "it changed the method from or to HEAD or CONNECT: the client would take the wrong "
               "bytes for its response";
    bool sound = response ? framing_of_response(&framing, head, HTTP_METHOD_GET)
                          : framing_of_request(&framing, head);
    return sound ? NULL : "the service made a head that contradicts itself about the body";
}
