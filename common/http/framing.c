#include "http/framing.h"

static bool framing_refuse(struct framing *framing, unsigned status, const char *error) {
    framing->status = status;
    framing->error = error;
    return false;
}

/* The codings of all Transfer-Encoding fields, in their order. Empty elements are noted too,
 * because programs may disagree about them. */
struct codings {
    unsigned count, chunked;
    bool chunked_is_last, has_empty;
};

static void count_codings(struct codings *codings, struct slice value) {
    for (;;) {
        const char *comma = value.length == 0 ? NULL : memchr(value.base, ',', value.length);
        size_t length = comma == NULL ? value.length : (size_t)(comma - value.base);
        struct slice coding = slice_trim(slice_make(value.base, length));
        codings->count++;
        codings->has_empty |= coding.length == 0;
        codings->chunked_is_last = slice_equal_nocase(coding, SLICE("chunked"));
        codings->chunked += codings->chunked_is_last;
        if (comma == NULL)
            return;
        value = slice_make(comma + 1, value.length - length - 1);
    }
}

static bool of_transfer_encoding(struct framing *framing, const struct http_head *head) {
    struct codings codings = {0, 0, false, false};
    const struct http_field *field = http_head_find(head, HTTP_TRANSFER_ENCODING);
    for (; field != NULL; field = http_head_find_next(head, HTTP_TRANSFER_ENCODING, field))
        count_codings(&codings, field->value);
    if (head->version < 11)
        return framing_refuse(framing, 400, "Transfer-Encoding in a message of HTTP/1.0");
    if (http_head_has(head, HTTP_CONTENT_LENGTH))
        return framing_refuse(framing, 400, "Content-Length together with Transfer-Encoding");
    if (codings.has_empty)
        return framing_refuse(framing, 400, "Transfer-Encoding with an empty coding");
    if (!codings.chunked_is_last)
        return framing_refuse(framing, 400, "the last transfer coding is not chunked");
    if (codings.chunked > 1)
        return framing_refuse(framing, 400, "the transfer coding chunked is applied twice");
    if (codings.count > 1)
        return framing_refuse(framing, 501,
                              "a transfer coding other than chunked is not supported");
    framing->kind = FRAMING_CHUNKED;
    return true;
}

/* Reads one Content-Length field. All values, in one or several fields, must be the same digits. */
static bool add_length(struct framing *framing, struct slice value, struct slice *first) {
    for (;;) {
        const char *comma = value.length == 0 ? NULL : memchr(value.base, ',', value.length);
        size_t length = comma == NULL ? value.length : (size_t)(comma - value.base);
        struct slice digits = slice_trim(slice_make(value.base, length));
        if (!slice_to_uint64(digits, &framing->length) || framing->length > INT64_MAX)
            return framing_refuse(framing, 400, "Content-Length is not a number of bytes");
        if (first->base != NULL && !slice_equal(*first, digits))
            return framing_refuse(framing, 400, "Content-Length values that differ");
        *first = digits;
        if (comma == NULL)
            return true;
        value = slice_make(comma + 1, value.length - length - 1);
    }
}

static bool of_content_length(struct framing *framing, const struct http_head *head) {
    struct slice first = slice_make(NULL, 0);
    const struct http_field *field = http_head_find(head, HTTP_CONTENT_LENGTH);
    for (; field != NULL; field = http_head_find_next(head, HTTP_CONTENT_LENGTH, field))
        if (!add_length(framing, field->value, &first))
            return false;
    framing->kind = FRAMING_LENGTH;
    return true;
}

/* Reads the framing from the fields. Without such fields the kind stays FRAMING_NONE. */
static bool of_fields(struct framing *framing, const struct http_head *head) {
    if (http_head_has(head, HTTP_TRANSFER_ENCODING))
        return of_transfer_encoding(framing, head);
    if (http_head_has(head, HTTP_CONTENT_LENGTH))
        return of_content_length(framing, head);
    return true;
}

/* The bytes after a CONNECT request belong to the tunnel (RFC 9110 §9.3.6). One side could read a
 * body as a body, and the other side could read it as the beginning of the tunnel. */
static bool of_connect(struct framing *framing) {
    if (framing->kind == FRAMING_CHUNKED || framing->length > 0)
        return framing_refuse(framing, 400, "a CONNECT request with a body");
    framing->kind = FRAMING_NONE;
    return true;
}

bool framing_of_request(struct framing *framing, const struct http_head *head) {
    *framing = (struct framing){FRAMING_NONE, 0, 0, NULL};
    if (!of_fields(framing, head))
        return false;
    return head->method_id != HTTP_METHOD_CONNECT || of_connect(framing);
}

/* Has the response no body, whatever its fields say (RFC 9112 §6.3, rules 1 and 2)? */
static bool never_has_body(unsigned status, enum http_method method) {
    return method == HTTP_METHOD_HEAD || status < 200 || status == 204 || status == 304 ||
           (method == HTTP_METHOD_CONNECT && status < 300);
}

bool framing_of_response(struct framing *framing, const struct http_head *head,
                         enum http_method method) {
    *framing = (struct framing){FRAMING_NONE, 0, 0, NULL};
    if (never_has_body(head->status, method))
        return true;
    if (!of_fields(framing, head))
        return false;
    if (framing->kind == FRAMING_NONE)
        framing->kind = FRAMING_CLOSE;
    return true;
}

bool framing_keeps_alive(const struct http_head *head) {
    if (http_head_has_token(head, HTTP_CONNECTION, SLICE("close")))
        return false;
    return head->version >= 11 || http_head_has_token(head, HTTP_CONNECTION, SLICE("keep-alive"));
}
