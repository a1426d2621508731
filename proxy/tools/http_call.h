/*
 * One HTTP request to the admin plane or to a listener, from the connection to the whole answer.
 *
 *     struct http_answer answer;
 *     char error[HTTP_CALL_ERROR];
 *     if (!http_call(&answer, "/run/retort/retort.sock", "GET", "/status", error))
 *         fprintf(stderr, "%s\n", error);     "can't connect to ...: is retort running...?"
 *     else
 *         printf("%u %s\n", answer.status, answer.body);
 *     http_answer_release(&answer);
 *
 * The admin plane's answers are kept, up to HTTP_CALL_MAX_BYTES, or copied to a file. A listener's
 * are read to their end, however long they are, and dropped.
 *
 * libcurl does the work (tools/transfer.h).
 *
 * Threads: any; blocks for at most HTTP_CALL_SECONDS without progress.
 */
#ifndef RETORT_TOOLS_HTTP_CALL_H
#define RETORT_TOOLS_HTTP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The environment's variable with the token for the admin plane. Listeners never get it. */
#define HTTP_CALL_TOKEN "RETORT_TOKEN"

enum {
    HTTP_CALL_ERROR = 512,
    HTTP_CALL_SECONDS = 30,
    HTTP_CALL_MAX_BYTES = 64 << 20,
};

struct http_answer {
    unsigned status;
    bool is_text; /* text/plain */
    char *body;   /* ends with NUL */
    size_t length;
};

/* `where` is as for transfer_open. Returns false with a message when no whole answer arrived. */
bool http_call(struct http_answer *answer, const char *where, const char *method, const char *path,
               char error[HTTP_CALL_ERROR]);
/* A request with all that it may have. */
struct http_request {
    const char *method, *target;
    const char *host;    /* NULL: the address */
    const char *headers; /* further field lines, each with CRLF; NULL: none */
    const char *token;   /* http_call and http_call_send set it; NULL: none */
    const char *body;
    size_t length;
};
bool http_call_send(struct http_answer *answer, const char *where,
                    const struct http_request *request, char error[HTTP_CALL_ERROR]);
/* Likewise, for an answer that may be long: the body of one with status 200 is written to `out` as
 * it comes, and `answer` has none. False with a message: a part may have been written. */
bool http_call_copy(struct http_answer *answer, const char *where,
                    const struct http_request *request, FILE *out, char error[HTTP_CALL_ERROR]);
void http_answer_release(struct http_answer *answer);
/* Gives the request the token of the environment, if there is one. */
void http_call_add_token(struct http_request *request);
/* Sends a GET to a listener. Returns true when a whole answer arrived, whatever its status. */
bool http_call_drain(unsigned *status, const char *where, const struct http_request *request,
                     char error[HTTP_CALL_ERROR]);

#endif
