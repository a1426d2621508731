#include "transaction/spans.h"

#include "base/clocks.h"
#include "part.h"
#include "transaction/transaction.h"

const struct slice spans_parent_name = {"traceparent", sizeof "traceparent" - 1};
const struct slice spans_state_name = {"tracestate", sizeof "tracestate" - 1};

static uint64_t spans_now(void) {
    return clocks_nanoseconds(CLOCK_MONOTONIC);
}

const struct trace_context *spans_sampled(const struct transaction *transaction) {
    const struct spans *spans = transaction->spans;
    return spans != NULL && spans->context.sampled ? &spans->context : NULL;
}

/* ---- the beginning ------------------------------------------------------------------------ */

void spans_begin(struct transaction *transaction) {
    struct spans *spans = arena_zalloc(&transaction->arena, sizeof *spans);
    struct spans_start start = {.caller = 0};
    transaction->spans = spans;
    PARTS_FOR_EACH (number, worker.trace)
        part_table[number]->worker.trace(transaction, &start);
    spans->context = start.context;
    spans->caller = start.caller;
    spans->adapt = (struct adapt_trace){start.context, start.services, SPANS_SERVICES_FROM};
}

/* ---- on the way --------------------------------------------------------------------------- */

/* The call that is under way; NULL: none that has a span. */
static struct spans_call *open_call(struct spans *spans) {
    return spans->call_open ? &spans->calls[spans->call_count - 1] : NULL;
}

static void end_call(struct spans *spans, uint64_t now) {
    if (spans->call_open)
        open_call(spans)->ended = now;
    spans->call_open = false;
}

/* Returns the span that the request is of, for whoever gets it. */
static uint64_t begin_call(struct transaction *transaction, const struct http_head *head) {
    struct spans *spans = transaction->spans;
    uint64_t now = spans_now();
    if (!spans->context.sampled)
        return spans->context.span;
    end_call(spans, now);
    if (spans->call_count == SPANS_CALLS)
        return trace_context_child(spans->context.span, STEP_FETCH);
    spans->calls[spans->call_count] = (struct spans_call){.method = head->method, .begun = now};
    spans->call_open = true;
    return trace_context_child(spans->context.span, SPANS_CALLS_FROM + spans->call_count++);
}

void spans_tell_origin(struct transaction *transaction, struct http_head *head) {
    struct trace_context context = transaction->spans->context;
    char *text = arena_alloc(&transaction->arena, TRACE_CONTEXT_TEXT);
    context.span = begin_call(transaction, head);
    http_head_remove_text(head, spans_parent_name); /* a service may have set them */
    http_head_remove_text(head, spans_state_name);
    if (http_head_add(head, spans_parent_name, trace_context_write(&context, text)) &&
        context.state.length > 0)
        http_head_add(head, spans_state_name, context.state);
}

void spans_name_origin(struct transaction *transaction, struct slice origin) {
    struct spans_call *call = open_call(transaction->spans);
    if (call != NULL)
        call->origin = origin;
}

void spans_note_answer(struct transaction *transaction, unsigned status) {
    struct spans_call *call = open_call(transaction->spans);
    if (call != NULL)
        call->status = status;
    end_call(transaction->spans, spans_now());
}

void spans_note_failure(struct transaction *transaction, const char *error) {
    struct spans_call *call = open_call(transaction->spans);
    if (call != NULL)
        call->error = arena_copy(&transaction->arena, slice_from(error));
    end_call(transaction->spans, spans_now());
}

void spans_forget_call(struct transaction *transaction) {
    struct spans *spans = transaction->spans;
    spans->call_count -= spans->call_open;
    spans->call_open = false;
}

/* ---- the end ------------------------------------------------------------------------------ */

void spans_end(struct transaction *transaction, uint64_t end) {
    if (spans_sampled(transaction) == NULL)
        return;
    transaction->net->counters.requests_traced++;
    PARTS_FOR_EACH (number, worker.traced)
        part_table[number]->worker.traced(transaction, end);
}
