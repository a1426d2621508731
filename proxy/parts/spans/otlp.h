/*
 * Spans as OTLP has them in JSON (OpenTelemetry Protocol 1.x, "JSON Protobuf Encoding"): the body
 * of an ExportTraceServiceRequest. Ids are hexadecimal, 64-bit numbers are texts, enums are numbers.
 *
 *     otlp_begin(out, "retort", version);
 *     for (each set) otlp_write(out, set, &first);
 *     otlp_end(out);
 *
 * Texts come from clients and servers: what is not good in JSON is escaped, as in logs (log/line.h),
 * and what is longer than SPAN_TEXT_MOST is cut.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_SPANS_OTLP_H
#define RETORT_SPANS_OTLP_H

#include "base/slice.h"
#include "spans/span.h"

#include <stdint.h>
#include <stdio.h>

void otlp_begin(FILE *out, const char *service, const char *version);
/* *first: no span has been written yet. */
void otlp_write(FILE *out, const struct span_set *set, bool *first);
void otlp_end(FILE *out);

/*
 * What a collector says in its answer to a post: how many of its spans it did not take, and why (OTLP,
 * "Partial Success": {"partialSuccess":{"rejectedSpans":"3","errorMessage":"..."}}).
 *
 *     char why[OTLP_ANSWER_WHY];
 *     uint64_t rejected = otlp_answer_rejected(body, why);        0, and an empty text: nothing
 *
 * The answer comes from the network. What is no such answer says nothing. A number may be written as
 * one or as a text, as JSON of protocol buffers allows. Of the text visible ASCII is left.
 *
 * Threads: pure.
 */

enum { OTLP_ANSWER_WHY = 200 };

uint64_t otlp_answer_rejected(struct slice body, char why[OTLP_ANSWER_WHY]);

#endif
