#include "tools/event_reader.h"

#include "admin/answer.h"
#include "base/assert.h"
#include "base/backoff.h"
#include "base/clocks.h"
#include "tools/admin_page.h"
#include "tools/event_lines.h"
#include "tools/http_call.h"
#include "tools/transfer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * An answer of the admin plane that goes on for as long as both sides want, read line by line. Memory: that
 * of the longest line, and of what arrives at once. Blocks for at most HTTP_CALL_SECONDS without progress.
 */

/* CALL_STREAM_LINE_MAX: bytes of the longest line; a line of a log has fewer. */
enum { CALL_STREAM_LINE_MAX = 128 << 10 };

enum call_stream_status {
    CALL_STREAM_LINE,
    CALL_STREAM_QUIET,  /* no whole line came in time */
    CALL_STREAM_END,    /* the answer has ended as it should */
    CALL_STREAM_FAILED, /* the message says why */
};

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

static void call_stream_close(struct call_stream **streamp) {
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

/* NULL: the answer has another status than 200, and is in `answer`, which the caller releases; or
 * its status is 0, and the message says why there is none. */
static struct call_stream *call_stream_open(const char *where, const struct http_request *request,
                                            struct http_answer *answer,
                                            char error[HTTP_CALL_ERROR]) {
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

/* The line is without its end, and stays until the next call. */
static enum call_stream_status call_stream_line(struct call_stream *stream, struct slice *line,
                                                unsigned milliseconds,
                                                char error[HTTP_CALL_ERROR]) {
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

/* Milliseconds. SILENCE: retort writes a comment every 10 s, so a stream without one is dead. */
enum { PAUSE_LEAST = 100, PAUSE_MOST = 5000, SILENCE = HTTP_CALL_SECONDS * 1000 };

struct event_reader {
    unsigned magic;
#define EVENT_READER_MAGIC 0xe4e47eadu
    const char *where;
    char *path;
    struct call_stream *stream; /* NULL: connected again at `next_try` */
    uint64_t heard;             /* when something came last */
    uint64_t gone;              /* since when there is no stream */
    uint64_t next_try;
    uint64_t pause;
    uint64_t lost;
    struct event_lines lines;
};

static uint64_t reader_now(void) {
    return clocks_milliseconds(CLOCK_MONOTONIC);
}

/* Connecting. */

static char *path_of_filters(char *const *filters) {
    char *path;
    size_t length;
    FILE *out = open_memstream(&path, &length);
    ASSERT(out != NULL);
    fputs("/v1/events?", out);
    for (; *filters != NULL; filters++) {
        const char *sign = strchr(*filters, '=');
        char *name = slice_dup(slice_make(*filters, (size_t)(sign - *filters)));
        admin_page_put(out, name, sign + 1);
        free(name);
    }
    ASSERT(fclose(out) == 0);
    return path;
}

static bool reader_connect(struct event_reader *reader, struct http_answer *answer, char *error) {
    const struct http_request request = {
        .method = "GET", .target = reader->path, .headers = "Accept: text/event-stream\r\n"};
    reader->stream = call_stream_open(reader->where, &request, answer, error);
    reader->heard = reader_now();
    event_lines_release(&reader->lines);
    return reader->stream != NULL;
}

struct event_reader *event_reader_open(const char *where, char *const *filters) {
    struct event_reader *reader;
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    ALLOC_OBJ(reader, EVENT_READER_MAGIC);
    reader->where = where;
    reader->path = path_of_filters(filters);
    if (!reader_connect(reader, &answer, error)) {
        if (answer.status != 0)
            admin_page_refused(&answer);
        else
            fprintf(stderr, "retortctl: %s\n", error);
        event_reader_close(&reader);
    }
    http_answer_release(&answer);
    return reader;
}

void event_reader_close(struct event_reader **readerp) {
    struct event_reader *reader = *readerp;
    *readerp = NULL;
    CHECK_OBJ(reader, EVENT_READER_MAGIC);
    call_stream_close(&reader->stream);
    event_lines_release(&reader->lines);
    free(reader->path);
    FREE_OBJ(reader);
}

static void reader_leave(struct event_reader *reader, const char *why) {
    fprintf(stderr, "retortctl: %s; connecting again\n", why);
    call_stream_close(&reader->stream);
    reader->pause = PAUSE_LEAST;
    reader->gone = reader_now();
    reader->next_try = reader->gone + reader->pause;
}

/* A refusal that time does not mend: the token, the class or a filter is not good any more. */
static bool is_final(const struct http_answer *answer) {
    return answer->status >= 400 && answer->status < 500 && answer->status != 408 &&
           answer->status != 429;
}

/* Waits for the next try, up to `until`, and makes it. False: there is nothing to try any more. */
static bool reader_try_again(struct event_reader *reader, uint64_t until) {
    struct http_answer answer = {0};
    char error[HTTP_CALL_ERROR];
    uint64_t now = reader_now(), end = until < reader->next_try ? until : reader->next_try;
    if (now < end) {
        const struct timespec wait = {(time_t)((end - now) / 1000),
                                      (long)((end - now) % 1000 * 1000000)};
        nanosleep(&wait, NULL);
    }
    if (reader_now() < reader->next_try)
        return true;
    bool final = !reader_connect(reader, &answer, error) && is_final(&answer);
    if (final)
        admin_page_refused(&answer);
    else if (reader->stream != NULL)
        fprintf(stderr,
                "retortctl: connected again after %.1f s; the transactions between are only in "
                "the access log\n",
                (double)(reader_now() - reader->gone) / 1000);
    http_answer_release(&answer);
    reader->pause = backoff_next(reader->pause, PAUSE_MOST);
    reader->next_try = reader_now() + reader->pause;
    return !final;
}

/* Reading. */

static void tell_loss(struct event_reader *reader, uint64_t lost) {
    reader->lost += lost;
    fprintf(stderr,
            "retortctl: %" PRIu64 " transaction%s lost because this terminal read too slowly\n",
            lost, lost == 1 ? " was" : "s were");
}

/* Is it the line with the data of a transaction? */
static bool reader_take(struct event_reader *reader, struct slice line, struct event_read *event) {
    reader->heard = reader_now();
    switch (event_lines_take(&reader->lines, line)) {
    case EVENT_LINE_TRANSACTION:
        answer_show(reader->lines.json);
        *event = (struct event_read){.line = reader->lines.data, .json = reader->lines.json};
        return true;
    case EVENT_LINE_LOSS: tell_loss(reader, event_lines_lost(&reader->lines)); break;
    case EVENT_LINE_BAD: fputs("retortctl: an event was left out: it is not JSON\n", stderr); break;
    case EVENT_LINE_OTHER: break;
    }
    return false;
}

/* One step: true if it has a transaction. */
static bool reader_step(struct event_reader *reader, struct event_read *event, uint64_t until) {
    struct slice line;
    char error[HTTP_CALL_ERROR];
    uint64_t now = reader_now();
    switch (
        call_stream_line(reader->stream, &line, until > now ? (unsigned)(until - now) : 0, error)) {
    case CALL_STREAM_LINE: return reader_take(reader, line, event);
    case CALL_STREAM_QUIET:
        if (reader_now() - reader->heard >= SILENCE)
            reader_leave(reader, "nothing came for 30 s");
        break;
    case CALL_STREAM_END:
        reader_leave(reader, "retort has ended the stream: it is being replaced or stopped");
        break;
    case CALL_STREAM_FAILED: reader_leave(reader, error); break;
    }
    return false;
}

enum event_reader_status event_reader_next(struct event_reader *reader, struct event_read *event,
                                           unsigned milliseconds) {
    CHECK_OBJ(reader, EVENT_READER_MAGIC);
    uint64_t until = reader_now() + milliseconds;
    do {
        if (reader->stream == NULL) {
            if (!reader_try_again(reader, until))
                return EVENT_READER_END;
        } else if (reader_step(reader, event, until)) {
            return EVENT_READER_TRANSACTION;
        }
    } while (reader_now() < until);
    return EVENT_READER_QUIET;
}

uint64_t event_reader_lost(const struct event_reader *reader) {
    return reader->lost;
}

bool event_reader_is_connected(const struct event_reader *reader) {
    return reader->stream != NULL;
}
