/*
 * The connection to a collector of spans, which takes OTLP over HTTP. This is all of libcurl.
 *
 *     struct collector *collector = collector_new();
 *     switch (collector_post(collector, &request, &reply, error)) ...
 *     collector_free(&collector);
 *
 * Threads: the exporter's alone, which may wait here; another one may set *request.stop.
 */
#ifndef RETORT_SPANS_COLLECTOR_H
#define RETORT_SPANS_COLLECTOR_H

#include "settings/tracing.h"

#include <stdatomic.h>

enum { COLLECTOR_ERROR = 256, COLLECTOR_REPLY = 8192 };

/* AGAIN: it may take the same later (OTLP, "Retryable Response Codes"). */
enum collector_answer { COLLECTOR_TOOK, COLLECTOR_AGAIN, COLLECTOR_REFUSED };

struct collector_request {
    const struct tracing_settings *tracing;
    const char *body;
    size_t length;
    uint64_t timeout; /* milliseconds */
    /* Once it is true: ends the post. */
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
/* `error` is set unless it took the spans. */
enum collector_answer collector_post(struct collector *collector,
                                     const struct collector_request *request,
                                     struct collector_reply *reply, char error[COLLECTOR_ERROR]);

#endif
