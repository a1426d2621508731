/*
 * An answer of the admin plane that goes on for as long as both sides want, read line by line.
 *
 *     const struct http_request request = {.method = "GET", .target = "/v1/events"};
 *     struct call_stream *stream = call_stream_open(where, &request, &answer, error);
 *     while (call_stream_line(stream, &line, 1000, error) == CALL_STREAM_LINE)
 *         fwrite(line.base, 1, line.length, stdout);
 *     call_stream_close(&stream);
 *
 * Memory: that of the longest line, and of what arrives at once. Threads: one at a time; blocks for at most
 * HTTP_CALL_SECONDS without progress.
 */
#ifndef RETORT_TOOLS_CALL_STREAM_H
#define RETORT_TOOLS_CALL_STREAM_H

#include "base/slice.h"
#include "tools/http_call.h"

/* CALL_STREAM_LINE_MAX: bytes of the longest line; a line of a log has fewer. */
enum { CALL_STREAM_LINE_MAX = 128 << 10 };

enum call_stream_status {
    CALL_STREAM_LINE,
    CALL_STREAM_QUIET,  /* no whole line came in time */
    CALL_STREAM_END,    /* the answer has ended as it should */
    CALL_STREAM_FAILED, /* the message says why */
};

struct call_stream;

/* NULL: the answer has another status than 200, and is in `answer`, which the caller releases; or
 * its status is 0, and the message says why there is none. */
struct call_stream *call_stream_open(const char *where, const struct http_request *request,
                                     struct http_answer *answer, char error[HTTP_CALL_ERROR]);
/* The line is without its end, and stays until the next call. */
enum call_stream_status call_stream_line(struct call_stream *stream, struct slice *line,
                                         unsigned milliseconds, char error[HTTP_CALL_ERROR]);
void call_stream_close(struct call_stream **streamp);

#endif
