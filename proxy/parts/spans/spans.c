#include "spans/spans.h"

#include "base/assert.h"
#include "base/clocks.h"

const struct slice spans_parent_name = {"traceparent", sizeof "traceparent" - 1};
const struct slice spans_state_name = {"tracestate", sizeof "tracestate" - 1};

static uint64_t spans_now(void) {
    return clocks_nanoseconds(CLOCK_MONOTONIC);
}

/* The call that is under way; NULL: none that has a span. */
static struct spans_call *open_call(struct span_notes *spans) {
    return spans->call_open ? &spans->calls[spans->call_count - 1] : NULL;
}

static void end_call(struct span_notes *spans, uint64_t now) {
    if (spans->call_open)
        open_call(spans)->ended = now;
    spans->call_open = false;
}

/* Returns the span that the request is of, for whoever gets it. */
static uint64_t begin_call(struct transaction *transaction, const struct http_head *head) {
    struct span_notes *spans = span_notes(transaction);
    uint64_t now = spans_now();
    if (!spans->base.context.sampled)
        return spans->base.context.span;
    end_call(spans, now);
    if (spans->call_count == SPANS_CALLS)
        return trace_context_child(spans->base.context.span, STEP_FETCH);
    spans->calls[spans->call_count] = (struct spans_call){.method = head->method, .begun = now};
    spans->call_open = true;
    return trace_context_child(spans->base.context.span, SPANS_CALLS_FROM + spans->call_count++);
}

static void spans_tell_origin(struct transaction *transaction, struct http_head *head) {
    struct trace_context context = transaction->spans->context;
    char *text = arena_alloc(&transaction->arena, TRACE_CONTEXT_TEXT);
    context.span = begin_call(transaction, head);
    http_head_remove_text(head, spans_parent_name); /* a service may have set them */
    http_head_remove_text(head, spans_state_name);
    if (http_head_add(head, spans_parent_name, trace_context_write(&context, text)) &&
        context.state.length > 0)
        http_head_add(head, spans_state_name, context.state);
}

static void spans_name_origin(struct transaction *transaction, struct slice origin) {
    struct spans_call *call = open_call(span_notes(transaction));
    if (call != NULL)
        call->origin = origin;
}

static void spans_note_answer(struct transaction *transaction, unsigned status) {
    struct spans_call *call = open_call(span_notes(transaction));
    if (call != NULL)
        call->status = status;
    end_call(span_notes(transaction), spans_now());
}

static void spans_note_failure(struct transaction *transaction, const char *error) {
    struct spans_call *call = open_call(span_notes(transaction));
    if (call != NULL)
        call->error = arena_copy(&transaction->arena, slice_from(error));
    end_call(span_notes(transaction), spans_now());
}

static void spans_forget_call(struct transaction *transaction) {
    struct span_notes *spans = span_notes(transaction);
    spans->call_count -= spans->call_open;
    spans->call_open = false;
}

static void spans_end(struct transaction *transaction, uint64_t end) {
    if (!transaction->spans->context.sampled)
        return;
    transaction->net->counters.requests_traced++;
    spans_make(transaction, end);
}

struct span_notes *span_notes_begin(struct transaction *transaction) {
    static const struct spans_class class = {
        .tell_origin = spans_tell_origin,
        .name_origin = spans_name_origin,
        .note_answer = spans_note_answer,
        .note_failure = spans_note_failure,
        .forget_call = spans_forget_call,
        .end = spans_end,
    };
    struct span_notes *notes = arena_zalloc(&transaction->arena, sizeof *notes);
    notes->base.class = &class;
    transaction->spans = &notes->base;
    return notes;
}
