/*
 * The connection to a collector of spans, which takes OTLP over HTTP.
 *
 *     struct collector *collector = collector_new();
 *     switch (collector_post(collector, &request, &reply, error)) ...
 *     collector_free(&collector);
 *
 * Threads: the exporter's alone, which may wait here; another one may set *request.stop. libcurl
 * looks up names in a thread of its own, which nobody waits for once a post is left: it ends when the
 * system's resolver does. No descriptor passes to programs that are started.
 */
#ifndef RETORT_SPANS_COLLECTOR_H
#define RETORT_SPANS_COLLECTOR_H

#include "spans/settings.h"

#include <stdatomic.h>

enum { COLLECTOR_ERROR = 256, COLLECTOR_REPLY = 8192 };

/* AGAIN: it may take the same later (OTLP, "Retryable Response Codes"). LEFT: the caller did not let
 * it answer; that says nothing about the collector. */
enum collector_answer { COLLECTOR_TOOK, COLLECTOR_AGAIN, COLLECTOR_REFUSED, COLLECTOR_LEFT };

struct collector_request {
    const struct tracing_settings *tracing;
    const char *body;
    size_t length;
    uint64_t timeout; /* milliseconds; less than that of the settings: the caller is in a hurry */
    /* Once it is true: ends the post, in a second at most. */
    const atomic_bool *stop;
};

/* The beginning of the body of its answer. */
struct collector_reply {
    size_t length; /* COLLECTOR_REPLY: there was more, perhaps */
    char body[COLLECTOR_REPLY];
};

struct collector;

struct collector *collector_new(void);
void collector_free(struct collector **collectorp);
/* `error` is set when it did not take the spans, unless the caller left. */
enum collector_answer collector_post(struct collector *collector,
                                     const struct collector_request *request,
                                     struct collector_reply *reply, char error[COLLECTOR_ERROR]);

#endif
