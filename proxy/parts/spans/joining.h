/*
 * To which trace a transaction belongs: that of its caller, or one of its own.
 *
 *     struct trace_ids ids;                            the worker's
 *     trace_ids_init(&ids);
 *     joining_decide(transaction, &ids, &start);       a transaction begins
 *
 * A caller in tracing.trust decides whether its request is sampled, and its trace goes on here. The
 * fields of all other callers are removed: they would let a client have its requests traced, here
 * and at the origin, and write into traces that are not its own.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_SPANS_JOINING_H
#define RETORT_SPANS_JOINING_H

#include "transaction/spans.h"

/* Takes the fields off the request. */
void joining_decide(struct transaction *transaction, struct trace_ids *ids,
                    struct spans_start *start);

#endif
