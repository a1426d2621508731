/*
 * The trace context of a request: which trace it belongs to, and which span called it, as the
 * fields traceparent and tracestate say (W3C Trace Context, Recommendation of 23 November 2021).
 *
 *     struct trace_context caller, own;
 *     if (trace_context_parse(&caller, traceparent))
 *         caller.state = trace_context_state(tracestate);
 *     trace_context_new(&own, ids);                         a trace of our own
 *     own.span = trace_context_child(own.span, 3);          an id of a span below it
 *     char text[TRACE_CONTEXT_TEXT];
 *     struct slice value = trace_context_write(&own, text);
 *
 * What comes in is the word of whoever sent it: it names a trace, and decides nothing by itself.
 *
 * Threads: values; ids belong to one thread.
 */
#ifndef RETORT_HTTP_TRACE_CONTEXT_H
#define RETORT_HTTP_TRACE_CONTEXT_H

#include "base/slice.h"

#include <stdint.h>

enum {
    TRACE_ID = 16,                /* bytes */
    TRACE_ID_TEXT = 2 * TRACE_ID, /* letters */
    TRACE_CONTEXT_TEXT = 55,      /* of a traceparent of version 00 */
    TRACE_STATE_MOST = 512,       /* bytes that are passed on (§3.3.1.5) */
    TRACE_STATE_MEMBERS = 32,     /* of the list (§3.3.1.1) */
};

struct trace_context {
    unsigned char trace[TRACE_ID];
    uint64_t span;      /* its bytes on the wire are the number's, the highest first */
    bool sampled;       /* its sender records it */
    struct slice state; /* of tracestate; empty: none */
};

/* The values of both fields, as they are sent. */
struct trace_fields {
    struct slice parent, state; /* state empty: there is none */
};

/* What random numbers are drawn from. Zero is no state: see trace_ids_init. */
struct trace_ids {
    uint64_t state[2];
};

void trace_ids_init(struct trace_ids *ids);
uint64_t trace_ids_draw(struct trace_ids *ids);

/* The value of traceparent; what follows a known part in a later version is not looked at (§4.3).
 * False: it names no trace, and tracestate must not be looked at (§4.2). */
bool trace_context_parse(struct trace_context *context, struct slice value);
/* The value of tracestate, its lines joined: as much of it as is passed on. Empty: it is malformed,
 * and deleted. */
struct slice trace_context_state(struct slice value);
/* A new trace, with a first span, that is not sampled. */
void trace_context_new(struct trace_context *context, struct trace_ids *ids);
/* The id of span number `number` of those below `span`: always the same one, and never 0. */
uint64_t trace_context_child(uint64_t span, unsigned number);
struct slice trace_context_write(const struct trace_context *context,
                                 char text[TRACE_CONTEXT_TEXT]);
/* Lower-case digits. */
void trace_context_write_id(const struct trace_context *context, char text[TRACE_ID_TEXT]);

#endif
