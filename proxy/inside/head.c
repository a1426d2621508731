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

static bool fields_are_clean(const struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (field->name.length == 0 || !head_is_of(field->name, BYTES_TOKEN) ||
            !head_is_text(field->value))
            return false;
    }
    return true;
}

static bool start_is_clean(const struct http_head *head, bool response) {
    if (response)
        return head->status <= 999 && head_is_text(head->reason);
    return head->method.length > 0 && head_is_of(head->method, BYTES_TOKEN) &&
           head->target.length > 0 && head_is_of(head->target, BYTES_TARGET);
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

const char *inside_head_error(const struct http_head *head, bool response,
                              enum http_method method) {
    struct framing framing;
    if (!start_is_clean(head, response) || !fields_are_clean(head))
        return "the service made a head with bytes that HTTP does not allow there";
    if (response && head->status < 200)
        return "the service made a response that a client would not take for the final one";
    if (!response && changes_framing(head, method))
        return "it changed the method from or to HEAD or CONNECT: the client would take the wrong "
               "bytes for its response";
    bool sound = response ? framing_of_response(&framing, head, HTTP_METHOD_GET)
                          : framing_of_request(&framing, head);
    return sound ? NULL : "the service made a head that contradicts itself about the body";
}
