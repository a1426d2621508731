#include "transaction/spans.h"

#include "base/clocks.h"
#include "part.h"
#include "transaction/access.h"
#include "transaction/transaction.h"

static const struct slice parent_name = {"traceparent", sizeof "traceparent" - 1};
static const struct slice state_name = {"tracestate", sizeof "tracestate" - 1};

static uint64_t spans_now(void) {
    return clocks_nanoseconds(CLOCK_MONOTONIC);
}

const struct trace_context *spans_sampled(const struct transaction *transaction) {
    const struct spans *spans = transaction->spans;
    return spans != NULL && spans->context.sampled ? &spans->context : NULL;
}

/* ---- the beginning ------------------------------------------------------------------------ */

/* Inside an intercepted connection the client itself speaks, whoever has carried its bytes. */
static bool caller_is_trusted(const struct transaction *transaction) {
    const struct tracing_settings *tracing = &transaction->settings->tracing;
    if (exchange_is_intercepted(transaction->exchange))
        return false;
    for (size_t i = 0; i < tracing->trust_count; i++)
        if (network_contains(&tracing->trust[i], &transaction->exchange->ends->client))
            return true;
    return false;
}

/* Takes the fields off the request. True: a caller that is trusted names a trace, by one field
 * (Trace Context §3.2: a request has one traceparent). */
static bool take_context(struct transaction *transaction, struct trace_context *caller) {
    struct http_head *head = &transaction->exchange->request;
    const struct http_field *parent = http_head_find_text(head, parent_name);
    bool good = parent != NULL && trace_context_parse(caller, parent->value) &&
                caller_is_trusted(transaction);
    if (good) {
        struct slice state = http_head_joined_text(head, state_name, &transaction->arena);
        caller->state = arena_slice(&transaction->arena, trace_context_state(state));
    }
    good &= http_head_remove_text(head, parent_name) == 1;
    http_head_remove_text(head, state_name);
    return good;
}

static bool is_chosen(struct transaction *transaction) {
    uint64_t drawn = trace_ids_draw(&transaction->host->trace_ids) >> 11;
    return (double)drawn * 0x1p-53 < transaction->settings->tracing.sample;
}

/* A caller's trace goes on. One that it does not record passes through as it is. */
static void join_trace(struct transaction *transaction, const struct trace_context *caller) {
    struct spans *spans = transaction->spans;
    spans->context = *caller;
    if (!caller->sampled)
        return;
    spans->caller = caller->span;
    spans->context.span = trace_ids_draw(&transaction->host->trace_ids) | 1;
}

void spans_begin(struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    struct spans *spans = arena_zalloc(&transaction->arena, sizeof *spans);
    struct trace_context caller;
    transaction->spans = spans;
    if (exchange->error_status == 0 && take_context(transaction, &caller)) {
        join_trace(transaction, &caller);
    } else {
        trace_context_new(&spans->context, &transaction->host->trace_ids);
        spans->context.sampled = is_chosen(transaction);
    }
    spans->begun[STEP_RECEIVE] = spans_now();
    spans->adapt = (struct adapt_trace){spans->context, transaction->settings->tracing.icap,
                                        SPANS_SERVICES_FROM};
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

void spans_note_step(struct transaction *transaction, enum step next) {
    struct spans *spans = transaction->spans;
    uint64_t now = spans_now();
    if (next == STEP_WAIT)
        return;
    spans->ended[transaction->step] = now;
    if (transaction->step == STEP_FETCH)
        end_call(spans, now);
    if (next < STEP_DONE)
        spans->begun[next] = now;
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
    http_head_remove_text(head, parent_name); /* a service may have set them */
    http_head_remove_text(head, state_name);
    if (http_head_add(head, parent_name, trace_context_write(&context, text)) &&
        context.state.length > 0)
        http_head_add(head, state_name, context.state);
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
