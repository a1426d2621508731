#include "ctl/call_stream.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "ctl/call_wire.h"
#include "http/chunked.h"
#include "http/head_parser.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* BYTES: of the head, and of what is decoded at a time. */
enum { BYTES = 16 << 10 };

struct call_stream {
    unsigned magic;
#define CALL_STREAM_MAGIC 0xc7157e4au
    struct call_wire wire;
    struct chunked_decoder decoder;
    bool ended;
    struct slice input;   /* in `bytes`: what is not decoded yet */
    size_t begin, length; /* in `text`: what is decoded; lines before `begin` were taken */
    char bytes[BYTES];
    char text[CALL_STREAM_LINE_MAX];
};

static bool call_stream_cut_off(const struct call_stream *stream, char *error) {
    snprintf(error, HTTP_CALL_ERROR, "%s: the answer is cut off, or not what retort would say",
             stream->wire.where);
    return false;
}

/* The head. */

static bool call_stream_read_head(struct call_stream *stream, struct http_head *head, char *error) {
    size_t length = 0;
    for (;;) {
        ssize_t used = http_head_parse_response(head, stream->bytes, length, 0);
        if (used > 0) {
            stream->input = slice_make(stream->bytes + used, length - (size_t)used);
            return true;
        }
        if (used < 0 || length == BYTES)
            return call_stream_cut_off(stream, error);
        ssize_t got =
            call_wire_receive(&stream->wire, stream->bytes + length, BYTES - length, error);
        if (got <= 0)
            return got == 0 && call_stream_cut_off(stream, error);
        length += (size_t)got;
    }
}

/* Keeps an answer that is no stream: why the admin plane refuses. */
static bool keep_answer(struct call_stream *stream, const struct http_head *head,
                        struct http_answer *answer, char *error) {
    uint64_t length;
    size_t kept = stream->input.length;
    if (!slice_to_uint64(http_head_value(head, HTTP_CONTENT_LENGTH), &length) ||
        length > CALL_STREAM_LINE_MAX || kept > length)
        return call_stream_cut_off(stream, error);
    memcpy(stream->text, stream->input.base, kept);
    while (kept < length) {
        ssize_t got =
            call_wire_receive(&stream->wire, stream->text + kept, (size_t)length - kept, error);
        if (got <= 0)
            return got == 0 && call_stream_cut_off(stream, error);
        kept += (size_t)got;
    }
    answer->status = head->status;
    answer->length = kept;
    answer->body = slice_dup(slice_make(stream->text, kept));
    return true;
}

static bool stream_begin(struct call_stream *stream, struct http_answer *answer, char *error) {
    struct http_head head;
    if (!call_stream_read_head(stream, &head, error))
        return false;
    if (head.status != 200) {
        keep_answer(stream, &head, answer, error);
        return false;
    }
    if (!slice_equal_nocase(http_head_value(&head, HTTP_TRANSFER_ENCODING), SLICE("chunked")))
        return call_stream_cut_off(stream, error);
    chunked_init(&stream->decoder);
    return true;
}

struct call_stream *call_stream_open(const char *where, const struct http_request *request,
                                     struct http_answer *answer, char error[HTTP_CALL_ERROR]) {
    struct call_stream *stream;
    *answer = (struct http_answer){0};
    ALLOC_OBJ(stream, CALL_STREAM_MAGIC);
    if (!http_call_begin(&stream->wire, where, request, error)) {
        FREE_OBJ(stream);
        return NULL;
    }
    if (!stream_begin(stream, answer, error))
        call_stream_close(&stream);
    return stream;
}

void call_stream_close(struct call_stream **streamp) {
    struct call_stream *stream = *streamp;
    *streamp = NULL;
    if (stream == NULL)
        return;
    CHECK_OBJ(stream, CALL_STREAM_MAGIC);
    call_wire_close(&stream->wire);
    FREE_OBJ(stream);
}

/* Lines. */

static bool call_stream_take_line(struct call_stream *stream, struct slice *line) {
    char *at = stream->text + stream->begin, *end;
    end = memchr(at, '\n', stream->length - stream->begin);
    if (end == NULL)
        return false;
    *line = slice_make(at, (size_t)(end - at));
    stream->begin += line->length + 1;
    return true;
}

/* Is there something to read, in time? TLS may hold bytes that the socket has already given. */
static bool wait_for_bytes(struct call_stream *stream, uint64_t until) {
    struct pollfd poll_fd = {.fd = stream->wire.fd, .events = POLLIN};
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    if (stream->wire.ssl != NULL && SSL_pending(stream->wire.ssl) > 0)
        return true;
    return poll(&poll_fd, 1, until > now ? (int)(until - now) : 0) != 0;
}

/* Moves what is left of the lines to the front, and decodes more behind it. */
static bool stream_decode(struct call_stream *stream, char *error) {
    size_t got, left = stream->length - stream->begin;
    memmove(stream->text, stream->text + stream->begin, left);
    stream->begin = 0;
    stream->length = left;
    if (left == CALL_STREAM_LINE_MAX) {
        snprintf(error, HTTP_CALL_ERROR, "%s: a line has more than %d KB", stream->wire.where,
                 CALL_STREAM_LINE_MAX >> 10);
        return false;
    }
    enum chunked_status status = chunked_decode(
        &stream->decoder, &stream->input, stream->text + left, CALL_STREAM_LINE_MAX - left, &got);
    stream->length += got;
    stream->ended = status == CHUNKED_END;
    return status != CHUNKED_BAD || call_stream_cut_off(stream, error);
}

static bool call_stream_receive(struct call_stream *stream, char *error) {
    ssize_t got = call_wire_receive(&stream->wire, stream->bytes, BYTES, error);
    if (got <= 0)
        return got == 0 && call_stream_cut_off(stream, error);
    stream->input = slice_make(stream->bytes, (size_t)got);
    return true;
}

enum call_stream_status call_stream_line(struct call_stream *stream, struct slice *line,
                                         unsigned milliseconds, char error[HTTP_CALL_ERROR]) {
    CHECK_OBJ(stream, CALL_STREAM_MAGIC);
    uint64_t until = clocks_milliseconds(CLOCK_MONOTONIC) + milliseconds;
    while (!call_stream_take_line(stream, line)) {
        if (stream->ended)
            return CALL_STREAM_END;
        if (stream->input.length == 0) {
            if (!wait_for_bytes(stream, until))
                return CALL_STREAM_QUIET;
            if (!call_stream_receive(stream, error))
                return CALL_STREAM_FAILED;
        }
        if (!stream_decode(stream, error))
            return CALL_STREAM_FAILED;
    }
    return CALL_STREAM_LINE;
}
