#include "ctl/http_call.h"

#include "base/assert.h"
#include "ctl/call_wire.h"
#include "http/bytes.h"
#include "http/chunked.h"
#include "http/framing.h"
#include "http/head_parser.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool call_fail(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool call_fail(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, HTTP_CALL_ERROR, format, arguments);
    va_end(arguments);
    return false;
}

/* Reads everything until the other side closes. Returns NULL with a message after a failure. */
static char *receive_all(struct call_wire *wire, size_t *length, char *error) {
    size_t capacity = 0;
    char *bytes = NULL;
    for (*length = 0; *length < HTTP_CALL_MAX_BYTES;) {
        if (capacity - *length < 2) {
            capacity += 64 << 10;
            bytes = xrealloc(bytes, capacity);
        }
        ssize_t got = call_wire_receive(wire, bytes + *length, capacity - *length - 1, error);
        if (got == 0) {
            bytes[*length] = '\0';
            return bytes;
        }
        if (got < 0) {
            free(bytes);
            return NULL;
        }
        *length += (size_t)got;
    }
    free(bytes);
    call_fail(error, "%s: the answer has more than %d MB", wire->where, HTTP_CALL_MAX_BYTES >> 20);
    return NULL;
}

/* The body must be as long as the head says. An answer that is cut off is an error. */
static bool http_call_take_answer(struct http_answer *answer, const char *bytes, size_t length) {
    struct http_head head;
    uint64_t body;
    ssize_t used = http_head_parse_response(&head, bytes, length, 0);
    if (used <= 0 || !slice_to_uint64(http_head_value(&head, HTTP_CONTENT_LENGTH), &body) ||
        body != length - (size_t)used)
        return false;
    answer->status = head.status;
    answer->length = (size_t)body;
    answer->body = slice_dup(slice_make(bytes + used, answer->length));
    return true;
}

/* The caller frees it. */
static char *http_call_write_head(const char *where, const struct http_request *request) {
    char *head, *own = NULL;
    const char *host = request->host;
    if (host == NULL)
        host = call_wire_is_path(where) ? "localhost" : (own = call_wire_authority(where));
    /* A GET with a length would be a request with a body, which the cache of a listener does not
     * serve. */
    char length[48] = "";
    if (strcmp(request->method, "GET") != 0)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", request->length);
    bool authorized = request->token != NULL;
    ASSERT(asprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n%s%s%s%s\r\n",
                    request->method, request->target, host,
                    request->headers == NULL ? "" : request->headers, length,
                    authorized ? "Authorization: Bearer " : "", authorized ? request->token : "",
                    authorized ? "\r\n" : "") > 0);
    free(own);
    return head;
}

/* The URL must have no blanks and control characters, because it is sent as it is. */
static bool is_one_word(const char *text) {
    const char *end = text + strlen(text);
    return end != text && bytes_skip(text, end, BYTES_TARGET) == end;
}

static bool is_sendable(const struct http_request *request, char *error) {
    if (request->token != NULL && !is_one_word(request->token))
        return call_fail(error, "the token has a blank or a control byte: compare it with the "
                                "line in admin.token_file");
    if (is_one_word(request->target) && (request->host == NULL || is_one_word(request->host)))
        return true;
    return call_fail(error, "a URL has a blank, a line end or another control byte: "
                            "percent-encode it");
}

static bool send_request(struct call_wire *wire, const struct http_request *request, char *error) {
    char *head = http_call_write_head(wire->where, request);
    bool sent = call_wire_send(wire, head, strlen(head), error) &&
                call_wire_send(wire, request->body, request->length, error);
    free(head);
    return sent;
}

bool http_call_begin(struct call_wire *wire, const char *where, const struct http_request *request,
                     char error[HTTP_CALL_ERROR]) {
    struct http_request with_token = *request;
    const char *token = getenv(HTTP_CALL_TOKEN);
    if (token != NULL && token[0] != '\0')
        with_token.token = token;
    if (!is_sendable(&with_token, error) || !call_wire_open(wire, where, error))
        return false;
    if (with_token.token != NULL && !call_wire_is_private(wire))
        call_fail(error,
                  "%s: the token would cross the network in clear text: write https://HOST:PORT, "
                  "or go through ssh -L",
                  where);
    else if (send_request(wire, &with_token, error))
        return true;
    call_wire_close(wire);
    return false;
}

static bool http_call_receive(struct http_answer *answer, struct call_wire *wire, char *error) {
    size_t length;
    char *bytes = receive_all(wire, &length, error);
    if (bytes == NULL)
        return false;
    bool good = http_call_take_answer(answer, bytes, length);
    free(bytes);
    return good || call_fail(error,
                             "%s: the answer is not HTTP, or cut off: is this retort's "
                             "admin.listen%s?",
                             wire->where,
                             wire->ssl == NULL && length == 0 && !call_wire_is_path(wire->where)
                                 ? ", and does it not speak TLS (https://)"
                                 : "");
}

bool http_call(struct http_answer *answer, const char *where, const char *method, const char *path,
               char error[HTTP_CALL_ERROR]) {
    const struct http_request request = {.method = method, .target = path};
    return http_call_send(answer, where, &request, error);
}

bool http_call_send(struct http_answer *answer, const char *where,
                    const struct http_request *request, char error[HTTP_CALL_ERROR]) {
    struct call_wire wire;
    *answer = (struct http_answer){0};
    if (!http_call_begin(&wire, where, request, error))
        return false;
    bool good = http_call_receive(answer, &wire, error);
    call_wire_close(&wire);
    return good;
}

void http_answer_release(struct http_answer *answer) {
    free(answer->body);
    *answer = (struct http_answer){0};
}

/* An answer that is not kept. */
struct drain {
    struct call_wire wire;
    char *error;
    FILE *out; /* gets its body; NULL: the body is dropped */
    char bytes[HTTP_CALL_HEAD_MAX];
    struct slice input; /* bytes that arrived and were not consumed yet */
};

static ssize_t receive_some(struct drain *drain, char *to, size_t room) {
    ssize_t got = call_wire_receive(&drain->wire, to, room, drain->error);
    if (got >= 0)
        drain->input = slice_make(to, (size_t)got);
    return got;
}

static bool unwritten(const struct drain *drain) {
    return call_fail(drain->error, "what came can't be written: %s", strerror(errno));
}

/* False: it can't be written, so the rest of the answer is not waited for. */
static bool drain_pass(const struct drain *drain, const char *bytes, size_t length) {
    return drain->out == NULL || fwrite(bytes, 1, length, drain->out) == length || unwritten(drain);
}

static bool http_call_cut_off(const struct drain *drain) {
    return call_fail(drain->error, "%s: the answer is not HTTP, or cut off", drain->wire.where);
}

/* Skips interim responses (RFC 9110 §15.2). */
static bool drain_head(struct drain *drain, struct framing *framing, unsigned *status) {
    struct http_head head;
    size_t length = 0, begin = 0;
    for (;;) {
        ssize_t used = http_head_parse_response(&head, drain->bytes + begin, length - begin, 0);
        if (used > 0 && head.status >= 200) {
            begin += (size_t)used;
            drain->input = slice_make(drain->bytes + begin, length - begin);
            *status = head.status;
            return framing_of_response(framing, &head, HTTP_METHOD_GET) || http_call_cut_off(drain);
        }
        if (used > 0) {
            begin += (size_t)used;
            continue;
        }
        if (used < 0 || length == sizeof drain->bytes)
            return http_call_cut_off(drain);
        ssize_t got = receive_some(drain, drain->bytes + length, sizeof drain->bytes - length);
        if (got <= 0)
            return got == 0 && http_call_cut_off(drain);
        length += (size_t)got;
    }
}

static bool drain_chunks(struct drain *drain) {
    struct chunked_decoder decoder;
    chunked_init(&decoder);
    for (;;) {
        size_t got;
        enum chunked_status status =
            chunked_decode(&decoder, &drain->input, drain->bytes, sizeof drain->bytes, &got);
        if (!drain_pass(drain, drain->bytes, got))
            return false;
        if (status != CHUNKED_MORE)
            return status == CHUNKED_END || http_call_cut_off(drain);
        ssize_t more = receive_some(drain, drain->bytes, sizeof drain->bytes);
        if (more <= 0)
            return more == 0 && http_call_cut_off(drain);
    }
}

/* Reads `length` bytes, or everything until the other side closes if `length` is UINT64_MAX. */
static bool drain_bytes(struct drain *drain, uint64_t length) {
    while (drain->input.length < length) {
        if (!drain_pass(drain, drain->input.base, drain->input.length))
            return false;
        if (length != UINT64_MAX)
            length -= drain->input.length;
        ssize_t more = receive_some(drain, drain->bytes, sizeof drain->bytes);
        if (more <= 0)
            return more == 0 && (length == UINT64_MAX || http_call_cut_off(drain));
    }
    return drain_pass(drain, drain->input.base, (size_t)length);
}

static bool drain_body(struct drain *drain, const struct framing *framing) {
    switch (framing->kind) {
    case FRAMING_NONE: return true;
    case FRAMING_LENGTH: return drain_bytes(drain, framing->length);
    case FRAMING_CHUNKED: return drain_chunks(drain);
    case FRAMING_CLOSE: return drain_bytes(drain, UINT64_MAX);
    }
    return false;
}

bool http_call_drain(unsigned *status, const char *where, const struct http_request *request,
                     char error[HTTP_CALL_ERROR]) {
    struct framing framing;
    if (!is_sendable(request, error))
        return false;
    struct drain *drain = xmalloc(sizeof *drain);
    drain->error = error;
    drain->out = NULL;
    bool open = call_wire_open(&drain->wire, where, error);
    bool good = open && send_request(&drain->wire, request, error) &&
                drain_head(drain, &framing, status) && drain_body(drain, &framing);
    if (open)
        call_wire_close(&drain->wire);
    free(drain);
    return good;
}

/* What is no 200 says why, and is short. */
static bool copy_answer(struct http_answer *answer, struct drain *drain, FILE *out) {
    struct framing framing;
    if (!drain_head(drain, &framing, &answer->status))
        return false;
    if (answer->status == 200) {
        drain->out = out;
        return drain_body(drain, &framing) && (fflush(out) == 0 || unwritten(drain));
    }
    drain->out = open_memstream(&answer->body, &answer->length);
    ASSERT(drain->out != NULL);
    bool good = framing.kind == FRAMING_LENGTH && framing.length <= HTTP_CALL_MAX_BYTES
                    ? drain_body(drain, &framing)
                    : http_call_cut_off(drain);
    ASSERT(fclose(drain->out) == 0);
    return good;
}

bool http_call_copy(struct http_answer *answer, const char *where,
                    const struct http_request *request, FILE *out, char error[HTTP_CALL_ERROR]) {
    struct drain *drain = xmalloc(sizeof *drain);
    *answer = (struct http_answer){0};
    drain->error = error;
    drain->out = NULL;
    bool open = http_call_begin(&drain->wire, where, request, error);
    bool good = open && copy_answer(answer, drain, out);
    if (open)
        call_wire_close(&drain->wire);
    if (!good)
        http_answer_release(answer);
    free(drain);
    return good;
}
