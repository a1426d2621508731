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

#include "base/arena.h"
#include "base/list.h"
#include "base/slice.h"
#include "http/trace_context.h"

#include <stdint.h>
#include <stdio.h>

/*
 * The spans of one transaction that is traced, on their way to a collector: names, times and attributes in
 * the terms of OpenTelemetry.
 *
 *     struct span_set *set = span_set_new(&context);
 *     struct span *span = span_set_add(set, SLICE("FETCH"), SPAN_INTERNAL);
 *     span_put_text(set, span, "server.address", name);
 *     span_exporter_post(exporter, &set);                   the exporter's from here on
 *
 * A set has SPANS_MOST spans at most, and a text SPAN_TEXT_MOST bytes; what is more is left out. Texts are
 * copied; the names of attributes are constants. Units: nanoseconds since 1970.
 */

enum { SPANS_MOST = 96, SPAN_ATTRIBUTES = 10, SPAN_TEXT_MOST = 1024 };

/* The numbers of OTLP. */
enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3 };

struct span_attribute {
    const char *name;
    bool is_text;
    struct slice text;
    int64_t number;
};

struct span {
    struct slice name;
    enum span_kind kind;
    uint64_t id, parent; /* parent 0: it begins the trace */
    uint64_t begun, ended;
    bool failed;
    struct slice error; /* why; may be empty */
    unsigned attribute_count;
    struct span_attribute attributes[SPAN_ATTRIBUTES];
};

struct span_set {
    unsigned magic;
#define SPAN_SET_MAGIC 0x59a45e70u
    struct list_link link; /* in the queue of the exporter */
    struct trace_context context;
    struct arena arena;
    unsigned count, room;
    struct span *spans;
};

struct span_set *span_set_new(const struct trace_context *context);
void span_set_free(struct span_set **setp);
/* NULL: the set is full. It is valid until the next one is added. */
struct span *span_set_add(struct span_set *set, struct slice name, enum span_kind kind);
/* Nothing, where the text is empty. */
void span_put_text(struct span_set *set, struct span *span, const char *name, struct slice text);
void span_put_number(struct span *span, const char *name, int64_t number);
void span_fail(struct span_set *set, struct span *span, const char *error);

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
