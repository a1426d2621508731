#include "tools/event_reader.h"

#include "admin/answer.h"
#include "base/assert.h"
#include "base/backoff.h"
#include "base/clocks.h"
#include "tools/admin_page.h"
#include "tools/call_stream.h"
#include "tools/event_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
