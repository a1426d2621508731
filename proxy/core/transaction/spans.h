/*
 * Tracing of one transaction, while there is a tracing section: to which trace it belongs, and who makes
 * spans of it, of its steps (journal.h), and of the requests that it sends to origins: the part spans.
 *
 *     if (transaction->spans != NULL)
 *         transaction->spans->class->tell_origin(transaction, head);
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
#include "transaction/transaction.h"

/* How ICAP services learn the trace: in the head of the ICAP request, in the HTTP request that it
 * encapsulates, in both, or not at all. */
enum tracing_icap { TRACING_ICAP_HEAD, TRACING_ICAP_MESSAGE, TRACING_ICAP_BOTH, TRACING_ICAP_OFF };

/* What services learn of the trace that the message belongs to. */
struct adapt_trace {
    struct trace_context context; /* its span is the one above those of the services */
    enum tracing_icap how;
    unsigned next; /* number of the next span below that one */
};

struct spans_class {
    /* FETCH: a request is about to be sent. */
    void (*tell_origin)(struct transaction *transaction, struct http_head *head);
    /* The server that it goes to; the name lives as long as the transaction. */
    void (*name_origin)(struct transaction *transaction, struct slice origin);
    /* How it ended, whatever becomes of the answer: with the status of the origin, without an answer, or
     * before anything was sent, which then has no span. */
    void (*note_answer)(struct transaction *transaction, unsigned status);
    void (*note_failure)(struct transaction *transaction, const char *error);
    void (*forget_call)(struct transaction *transaction);
    /* LOG. The chains of services must still be there. */
    void (*end)(struct transaction *transaction, uint64_t end);
};

/* Written by ../../parts/spans/spans.c. */
struct spans {
    const struct spans_class *class;
    struct trace_context context; /* its span is that of the transaction */
    struct adapt_trace adapt;     /* what services learn */
};

/* The trace that spans are exported for; NULL: the transaction is not sampled. */
static inline const struct trace_context *spans_sampled(const struct transaction *transaction) {
    const struct spans *spans = transaction->spans;
    return spans != NULL && spans->context.sampled ? &spans->context : NULL;
}

#endif
