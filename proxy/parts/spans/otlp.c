#include "spans/otlp.h"

#include "base/assert.h"
#include "log/line.h"

#include <inttypes.h>
#include <jansson.h>

enum { ROOM_FIRST = 16 };

struct span_set *span_set_new(const struct trace_context *context) {
    struct span_set *set;
    ALLOC_OBJ(set, SPAN_SET_MAGIC);
    list_init(&set->link);
    arena_init(&set->arena);
    set->context = *context;
    set->context.state = arena_slice(&set->arena, context->state);
    return set;
}

void span_set_free(struct span_set **setp) {
    struct span_set *set = *setp;
    *setp = NULL;
    CHECK_OBJ(set, SPAN_SET_MAGIC);
    list_remove(&set->link);
    arena_release(&set->arena);
    free(set->spans);
    FREE_OBJ(set);
}

static struct slice span_copy(struct span_set *set, struct slice text) {
    if (text.length > SPAN_TEXT_MOST)
        text.length = SPAN_TEXT_MOST;
    return arena_slice(&set->arena, text);
}

struct span *span_set_add(struct span_set *set, struct slice name, enum span_kind kind) {
    CHECK_OBJ(set, SPAN_SET_MAGIC);
    if (set->count == SPANS_MOST)
        return NULL;
    if (set->count == set->room) {
        set->room += set->room == 0 ? ROOM_FIRST : set->room;
        set->spans = xrealloc(set->spans, set->room * sizeof *set->spans);
    }
    struct span *span = &set->spans[set->count++];
    *span = (struct span){.name = span_copy(set, name), .kind = kind};
    return span;
}

static struct span_attribute *put(struct span *span, const char *name) {
    ASSERT(span->attribute_count < SPAN_ATTRIBUTES);
    struct span_attribute *attribute = &span->attributes[span->attribute_count++];
    *attribute = (struct span_attribute){.name = name};
    return attribute;
}

void span_put_text(struct span_set *set, struct span *span, const char *name, struct slice text) {
    if (text.length == 0)
        return;
    struct span_attribute *attribute = put(span, name);
    attribute->is_text = true;
    attribute->text = span_copy(set, text);
}

void span_put_number(struct span *span, const char *name, int64_t number) {
    put(span, name)->number = number;
}

void span_fail(struct span_set *set, struct span *span, const char *error) {
    span->failed = true;
    span->error = span_copy(set, slice_from(error));
}

enum { STATUS_ERROR = 2, FLAG_SAMPLED = 1 };

/* Six letters at most for each byte. What is longer is cut. */
static void otlp_put_text(FILE *out, struct slice text) {
    char room[6 * SPAN_TEXT_MOST + 64];
    struct log_line line = {room, room + 6 * SPAN_TEXT_MOST};
    if (text.length > SPAN_TEXT_MOST)
        text.length = SPAN_TEXT_MOST;
    log_line_put_json(&line, text);
    fwrite(room, 1, (size_t)(line.at - room), out);
}

static void put_text_attribute(FILE *out, const char *name, struct slice text) {
    fprintf(out, "{\"key\":\"%s\",\"value\":{\"stringValue\":", name);
    otlp_put_text(out, text);
    fputs("}}", out);
}

static void put_attribute(FILE *out, const struct span_attribute *attribute) {
    if (attribute->is_text)
        put_text_attribute(out, attribute->name, attribute->text);
    else
        fprintf(out, "{\"key\":\"%s\",\"value\":{\"intValue\":\"%" PRId64 "\"}}", attribute->name,
                attribute->number);
}

void otlp_begin(FILE *out, const char *service, const char *version) {
    fputs("{\"resourceSpans\":[{\"resource\":{\"attributes\":[", out);
    put_text_attribute(out, "service.name", slice_from(service));
    fputc(',', out);
    put_text_attribute(out, "service.version", slice_from(version));
    fputs("]},\"scopeSpans\":[{\"scope\":{\"name\":\"retort\"},\"spans\":[", out);
}

static void put_ids(FILE *out, const struct span_set *set, const struct span *span) {
    char trace[TRACE_ID_TEXT];
    trace_context_write_id(&set->context, trace);
    fprintf(out, "{\"traceId\":\"%.*s\",\"spanId\":\"%016" PRIx64 "\"", TRACE_ID_TEXT, trace,
            span->id);
    if (span->parent != 0)
        fprintf(out, ",\"parentSpanId\":\"%016" PRIx64 "\"", span->parent);
    if (set->context.state.length > 0) {
        fputs(",\"traceState\":", out);
        otlp_put_text(out, set->context.state);
    }
}

static void put_span(FILE *out, const struct span_set *set, const struct span *span) {
    put_ids(out, set, span);
    fprintf(out, ",\"flags\":%d,\"name\":", FLAG_SAMPLED);
    otlp_put_text(out, span->name);
    fprintf(out,
            ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64
            "\",\"attributes\":[",
            (int)span->kind, span->begun, span->ended);
    for (unsigned i = 0; i < span->attribute_count; i++) {
        if (i > 0)
            fputc(',', out);
        put_attribute(out, &span->attributes[i]);
    }
    fputs("],\"status\":{", out);
    if (span->failed) {
        fprintf(out, "\"code\":%d,\"message\":", STATUS_ERROR);
        otlp_put_text(out, span->error);
    }
    fputs("}}", out);
}

void otlp_write(FILE *out, const struct span_set *set, bool *first) {
    CHECK_OBJ(set, SPAN_SET_MAGIC);
    for (unsigned i = 0; i < set->count; i++) {
        if (!*first)
            fputc(',', out);
        *first = false;
        put_span(out, set, &set->spans[i]);
    }
}

void otlp_end(FILE *out) {
    fputs("]}]}]}", out);
}

static uint64_t answer_number(const json_t *value) {
    uint64_t number = 0;
    if (json_is_integer(value) && json_integer_value(value) > 0)
        return (uint64_t)json_integer_value(value);
    if (json_is_string(value) &&
        !slice_to_uint64(slice_make(json_string_value(value), json_string_length(value)), &number))
        return 0;
    return number;
}

static void answer_text(const json_t *value, char why[OTLP_ANSWER_WHY]) {
    const char *text = json_string_value(value);
    size_t length = 0;
    for (; text != NULL && text[length] != '\0' && length < OTLP_ANSWER_WHY - 1; length++)
        why[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    why[length] = '\0';
}

uint64_t otlp_answer_rejected(struct slice body, char why[OTLP_ANSWER_WHY]) {
    json_t *answer = json_loadb(body.base, body.length, 0, NULL);
    const json_t *partial = json_object_get(answer, "partialSuccess");
    uint64_t rejected = answer_number(json_object_get(partial, "rejectedSpans"));
    answer_text(json_object_get(partial, "errorMessage"), why);
    json_decref(answer);
    return rejected;
}
