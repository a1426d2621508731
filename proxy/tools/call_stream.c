#include "tools/call_stream.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "tools/transfer.h"

#include <stdlib.h>
#include <string.h>

struct call_stream {
    unsigned magic;
#define CALL_STREAM_MAGIC 0xc7157e4au
    struct transfer transfer;
    CURLM *multi;
    bool ended;
    CURLcode result;                /* behind the end */
    size_t begin, length, capacity; /* in `text`; lines before `begin` were taken */
    char *text;
};

static size_t stream_take(char *bytes, size_t size, size_t count, void *arg) {
    struct call_stream *stream = arg;
    size_t length = size * count;
    if (stream->capacity - stream->length < length) {
        stream->capacity = stream->length + length + CALL_STREAM_LINE_MAX;
        stream->text = xrealloc(stream->text, stream->capacity);
    }
    memcpy(stream->text + stream->length, bytes, length);
    stream->length += length;
    return length;
}

/* Does what can be done, after a while in which nothing could. */
static void stream_go_on(struct call_stream *stream, uint64_t milliseconds) {
    int running = 0, left;
    ASSERT(curl_multi_poll(stream->multi, NULL, 0, (int)milliseconds, NULL) == CURLM_OK);
    ASSERT(curl_multi_perform(stream->multi, &running) == CURLM_OK);
    stream->ended = running == 0;
    if (stream->ended)
        stream->result = curl_multi_info_read(stream->multi, &left)->data.result;
}

static bool is_chunked(CURL *curl) {
    struct curl_header *field;
    return curl_easy_header(curl, "Transfer-Encoding", 0, CURLH_HEADER, -1, &field) == CURLHE_OK &&
           slice_equal_nocase(slice_from(field->value), SLICE("chunked"));
}

/* Keeps an answer that is no stream: why the admin plane refuses. */
static bool keep_answer(struct call_stream *stream, struct http_answer *answer) {
    int64_t length = transfer_length(&stream->transfer);
    if (length < 0 || length > CALL_STREAM_LINE_MAX)
        return transfer_cut_off(&stream->transfer);
    while (!stream->ended)
        stream_go_on(stream, 1000);
    if (!transfer_end(&stream->transfer, stream->result))
        return false;
    answer->status = transfer_status(&stream->transfer);
    answer->length = stream->length;
    answer->body = slice_dup(slice_make(stream->text, stream->length));
    return true;
}

/* Nobody waits for the head for ever; the lines behind it have all the time. */
static bool stream_begin(struct call_stream *stream, struct http_answer *answer) {
    CURL *curl = stream->transfer.curl;
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, stream_take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, (void *)stream);
    do {
        curl_multi_remove_handle(stream->multi, curl);
        ASSERT(curl_multi_add_handle(stream->multi, curl) == CURLM_OK);
        do
            stream_go_on(stream, 1000);
        while (!stream->ended && !stream->transfer.head_ended);
    } while (stream->ended && transfer_must_wait(&stream->transfer, stream->result));
    if (!stream->transfer.head_ended)
        return transfer_end(&stream->transfer, stream->result);
    if (transfer_status(&stream->transfer) != 200) {
        keep_answer(stream, answer);
        return false;
    }
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 0L);
    return is_chunked(curl) || transfer_cut_off(&stream->transfer);
}

struct call_stream *call_stream_open(const char *where, const struct http_request *request,
                                     struct http_answer *answer, char error[HTTP_CALL_ERROR]) {
    struct call_stream *stream;
    struct http_request with_token = *request;
    *answer = (struct http_answer){0};
    ALLOC_OBJ(stream, CALL_STREAM_MAGIC);
    http_call_add_token(&with_token);
    stream->transfer.error = error;
    stream->transfer.cut_off = "the answer is cut off, or not what retort would say";
    if (!transfer_open(&stream->transfer, where, &with_token) ||
        (stream->multi = curl_multi_init()) == NULL || !stream_begin(stream, answer))
        call_stream_close(&stream);
    return stream;
}

void call_stream_close(struct call_stream **streamp) {
    struct call_stream *stream = *streamp;
    *streamp = NULL;
    if (stream == NULL)
        return;
    CHECK_OBJ(stream, CALL_STREAM_MAGIC);
    if (stream->multi != NULL)
        curl_multi_remove_handle(stream->multi, stream->transfer.curl);
    transfer_close(&stream->transfer);
    curl_multi_cleanup(stream->multi);
    free(stream->text);
    FREE_OBJ(stream);
}

/* Lines. */

static bool stream_take_line(struct call_stream *stream, struct slice *line) {
    char *at = stream->text + stream->begin, *end;
    size_t left = stream->length - stream->begin;
    if (left == 0 || (end = memchr(at, '\n', left)) == NULL)
        return false;
    *line = slice_make(at, (size_t)(end - at));
    stream->begin += line->length + 1;
    return true;
}

/* Moves what is left of the lines to the front. False: it is too long for a line. */
static bool stream_move(struct call_stream *stream) {
    size_t left = stream->length - stream->begin;
    if (left >= CALL_STREAM_LINE_MAX)
        return transfer_fail(&stream->transfer, "%s: a line has more than %d KB",
                             stream->transfer.where, CALL_STREAM_LINE_MAX >> 10);
    if (left > 0)
        memmove(stream->text, stream->text + stream->begin, left);
    stream->begin = 0;
    stream->length = left;
    return true;
}

enum call_stream_status call_stream_line(struct call_stream *stream, struct slice *line,
                                         unsigned milliseconds, char error[HTTP_CALL_ERROR]) {
    CHECK_OBJ(stream, CALL_STREAM_MAGIC);
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC), until = now + milliseconds;
    stream->transfer.error = error;
    while (!stream_take_line(stream, line)) {
        if (!stream_move(stream))
            return CALL_STREAM_FAILED;
        if (stream->ended)
            return transfer_end(&stream->transfer, stream->result) ? CALL_STREAM_END
                                                                   : CALL_STREAM_FAILED;
        size_t length = stream->length;
        stream_go_on(stream, until > now ? until - now : 0);
        now = clocks_milliseconds(CLOCK_MONOTONIC);
        if (stream->length == length && !stream->ended && now >= until)
            return CALL_STREAM_QUIET;
    }
    return CALL_STREAM_LINE;
}
