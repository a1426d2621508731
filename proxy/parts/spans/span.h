/*
 * The spans of one transaction that is traced, on their way to a collector: names, times and
 * attributes in the terms of OpenTelemetry.
 *
 *     struct span_set *set = span_set_new(&context);
 *     struct span *span = span_set_add(set, SLICE("FETCH"), SPAN_INTERNAL);
 *     span->id = trace_context_child(context.span, STEP_FETCH);
 *     span->parent = context.span;
 *     span_put_text(set, span, "server.address", name);
 *     span_put_number(span, "http.response.status_code", 200);
 *     span_exporter_post(exporter, &set);                   the exporter's from here on
 *
 * A set has SPANS_MOST spans at most, and a text SPAN_TEXT_MOST bytes; what is more is left out.
 * Texts are copied; the names of attributes are constants.
 *
 * Threads: one at a time. Units: nanoseconds since 1970.
 */
#ifndef RETORT_SPANS_SPAN_H
#define RETORT_SPANS_SPAN_H

#include "base/arena.h"
#include "base/list.h"
#include "http/trace_context.h"

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

#endif
