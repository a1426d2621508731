/*
 * Tracing of one transaction, while there is a tracing section: to which trace it belongs, and which
 * requests it sent to origins. At its end a part makes spans of these and of its steps (journal.h), if
 * the transaction is sampled:
 *
 *     GET                                   the transaction
 *       RECEIVE, LOOKUP, DELIVER ...        its steps
 *       FETCH
 *         GET origin.example:80             each request that was sent
 *       RESPMOD
 *         RESPMOD gray                      each service that was asked
 *
 *     if (settings->traces) spans_begin(transaction);      before RECEIVE
 *     spans_tell_origin(transaction, head);           FETCH: a request is about to be sent
 *     spans_note_answer(transaction, status);         FETCH: the origin has answered
 *     spans_end(transaction, end);                    LOG
 *
 * The part decides at the beginning to which trace the transaction belongs, and whether it is sampled
 * (part.h: worker.trace).
 *
 * Threads: the worker's. Memory: the transaction's arena. Units: nanoseconds of the monotonic clock.
 */
#ifndef RETORT_TRANSACTION_SPANS_H
#define RETORT_TRANSACTION_SPANS_H

#include "http/head.h"
#include "http/trace_context.h"
#include "transaction/step.h"

/* More requests to origins than these have no span of their own. */
enum { SPANS_CALLS = 8 };
/* Numbers of spans below that of the transaction: steps have those of their enum. */
enum { SPANS_CALLS_FROM = STEP_DONE, SPANS_SERVICES_FROM = SPANS_CALLS_FROM + SPANS_CALLS };

/* How ICAP services learn the trace: in the head of the ICAP request, in the HTTP request that it
 * encapsulates, in both, or not at all. */
enum tracing_icap { TRACING_ICAP_HEAD, TRACING_ICAP_MESSAGE, TRACING_ICAP_BOTH, TRACING_ICAP_OFF };

/* What services learn of the trace that the message belongs to. */
struct adapt_trace {
    struct trace_context context; /* its span is the one above those of the services */
    enum tracing_icap how;
    unsigned next; /* number of the next span below that one */
};

struct transaction;

/* A request that was sent to an origin. */
struct spans_call {
    struct slice origin, method;
    uint64_t begun, ended; /* ended 0: there was no answer before FETCH ended */
    unsigned status;       /* of the origin's own answer; 0: there was none */
    const char *error;     /* why not; NULL: nobody waited for it any more */
};

/* What a part decides at the beginning. */
struct spans_start {
    struct trace_context context; /* its span is that of the transaction */
    uint64_t caller;              /* the span that called; 0: the trace begins here */
    enum tracing_icap services;   /* how they learn of it */
};

/* Written by spans.c. */
struct spans {
    struct trace_context context; /* its span is that of the transaction */
    uint64_t caller;              /* the span that called; 0: the trace begins here */
    struct spans_call calls[SPANS_CALLS];
    unsigned call_count;
    bool call_open;           /* the last one has not ended */
    struct adapt_trace adapt; /* what services learn */
};

/* The fields that carry a trace. */
extern const struct slice spans_parent_name, spans_state_name;

void spans_begin(struct transaction *transaction);
void spans_tell_origin(struct transaction *transaction, struct http_head *head);
/* The server that the request goes to; the name lives as long as the transaction. */
void spans_name_origin(struct transaction *transaction, struct slice origin);
/* How the request ended, whatever becomes of the answer: with the status of the origin, without an
 * answer, or before anything was sent, which then has no span. */
void spans_note_answer(struct transaction *transaction, unsigned status);
void spans_note_failure(struct transaction *transaction, const char *error);
void spans_forget_call(struct transaction *transaction);
/* Shows what was noted to the parts. The chains of services must still be there. */
void spans_end(struct transaction *transaction, uint64_t end);

/* The trace that spans are exported for; NULL: the transaction is not sampled. */
const struct trace_context *spans_sampled(const struct transaction *transaction);

#endif
