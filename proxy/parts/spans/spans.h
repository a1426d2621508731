/*
 * What a traced transaction notes: the requests that it sends to origins. At its end the part makes spans of these
 * and of its steps, if the transaction is sampled:
 *
 *     GET                                   the transaction
 *       RECEIVE, LOOKUP, DELIVER ...        its steps
 *       FETCH
 *         GET origin.example:80             each request that was sent
 *       RESPMOD
 *         RESPMOD gray                      each service that was asked
 *
 *     struct span_notes *notes = span_notes_begin(transaction);
 *     notes->base.context = ...                       to which trace it belongs
 *
 * Threads: the worker's. Memory: the transaction's arena. Units: nanoseconds of the monotonic clock.
 */
#ifndef RETORT_SPANS_SPANS_H
#define RETORT_SPANS_SPANS_H

#include "transaction/spans.h"

/* More requests to origins than these have no span of their own. */
enum { SPANS_CALLS = 8 };
/* Numbers of spans below that of the transaction: steps have those of their enum. */
enum { SPANS_CALLS_FROM = STEP_DONE, SPANS_SERVICES_FROM = SPANS_CALLS_FROM + SPANS_CALLS };

/* A request that was sent to an origin. */
struct spans_call {
    struct slice origin, method;
    uint64_t begun, ended; /* ended 0: there was no answer before FETCH ended */
    unsigned status;       /* of the origin's own answer; 0: there was none */
    const char *error;     /* why not; NULL: nobody waited for it any more */
};

struct span_notes {
    struct spans base;
    uint64_t caller; /* the span that called; 0: the trace begins here */
    struct spans_call calls[SPANS_CALLS];
    unsigned call_count;
    bool call_open; /* the last one has not ended */
};

/* The fields that carry a trace. */
extern const struct slice spans_parent_name, spans_state_name;

static inline struct span_notes *span_notes(const struct transaction *transaction) {
    return CONTAINER_OF(transaction->spans, struct span_notes, base);
}

/* transaction->spans, as zeros. */
struct span_notes *span_notes_begin(struct transaction *transaction);
/* The transaction, which is sampled, has ended, with its client, at `end`. */
void spans_make(struct transaction *transaction, uint64_t end);

#endif
