#include "spans/joining.h"

#include "spans/settings.h"
#include "transaction/access.h"
#include "transaction/transaction.h"

/* Inside an intercepted connection the client itself speaks, whoever has carried its bytes. */
static bool caller_is_trusted(const struct transaction *transaction) {
    const struct tracing_settings *tracing = tracing_settings_of(transaction->settings);
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
    const struct http_field *parent = http_head_find_text(head, spans_parent_name);
    bool good = parent != NULL && trace_context_parse(caller, parent->value) &&
                caller_is_trusted(transaction);
    if (good) {
        struct slice state = http_head_joined_text(head, spans_state_name, &transaction->arena);
        caller->state = arena_slice(&transaction->arena, trace_context_state(state));
    }
    good &= http_head_remove_text(head, spans_parent_name) == 1;
    http_head_remove_text(head, spans_state_name);
    return good;
}

static bool is_chosen(const struct tracing_settings *tracing, struct trace_ids *ids) {
    uint64_t drawn = trace_ids_draw(ids) >> 11;
    return (double)drawn * 0x1p-53 < tracing->sample;
}

/* A caller's trace goes on. One that it does not record passes through as it is. */
static void join_trace(struct spans_start *start, struct trace_ids *ids,
                       const struct trace_context *caller) {
    start->context = *caller;
    if (!caller->sampled)
        return;
    start->caller = caller->span;
    start->context.span = trace_ids_draw(ids) | 1;
}

void joining_decide(struct transaction *transaction, struct trace_ids *ids,
                    struct spans_start *start) {
    const struct tracing_settings *tracing = tracing_settings_of(transaction->settings);
    struct trace_context caller;
    start->services = tracing->icap;
    if (transaction->exchange->error_status == 0 && take_context(transaction, &caller)) {
        join_trace(start, ids, &caller);
    } else {
        trace_context_new(&start->context, ids);
        start->context.sampled = is_chosen(tracing, ids);
    }
}
