#include "transaction/spans.h"

#include "base/clocks.h"
#include "spans/exporter.h"
#include "transaction/access.h"
#include "transaction/transaction.h"

static const struct slice parent_name = {"traceparent", sizeof "traceparent" - 1};
static const struct slice state_name = {"tracestate", sizeof "tracestate" - 1};

/* Numbers of spans below that of the transaction: steps have those of their enum. */
enum { CALLS_FROM = STEP_DONE, SERVICES_FROM = CALLS_FROM + SPANS_CALLS };

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
    spans->adapt =
        (struct adapt_trace){spans->context, transaction->settings->tracing.icap, SERVICES_FROM};
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
    return trace_context_child(spans->context.span, CALLS_FROM + spans->call_count++);
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

/* Spans in the making. `offset`: what is added to the monotonic clock. */
struct spans_text {
    struct transaction *transaction;
    struct span_set *set;
    uint64_t offset, end;
};

/* NULL: there are too many. `ended` 0: it goes on at the end of the transaction. */
static struct span *add_span(struct spans_text *text, struct slice name, enum span_kind kind,
                             unsigned number, uint64_t parent, uint64_t begun, uint64_t ended) {
    struct span *span = span_set_add(text->set, name, kind);
    if (span == NULL)
        return NULL;
    if (ended == 0 || ended > text->end)
        ended = text->end > begun ? text->end : begun;
    span->id = trace_context_child(text->set->context.span, number);
    span->parent = parent;
    span->begun = begun + text->offset;
    span->ended = ended + text->offset;
    return span;
}

/* A target that is no URL is not shown: nobody knows what stands where in it. */
static struct slice shown_url(const struct transaction *transaction) {
    struct slice url = transaction->request.original_url;
    size_t length = 0;
    if (transaction->request.url_text.length == 0)
        return slice_make("", 0);
    while (length < url.length && url.base[length] != '?' && url.base[length] != '#')
        length++;
    if (!transaction->settings->tracing.queries)
        url.length = length;
    return url;
}

/* OpenTelemetry writes "2" where logs and Via write "2.0". */
static struct slice version_name(struct slice version) {
    return slice_equal(version, SLICE("2.0")) ? SLICE("2") : version;
}

static void add_root(struct spans_text *text) {
    struct transaction *transaction = text->transaction;
    const struct exchange *exchange = transaction->exchange;
    const struct outcome *outcome = &transaction->outcome;
    struct slice method = transaction->request.original_method;
    struct span *span = add_span(text, method.length > 0 ? method : SLICE("HTTP"),
                                 exchange->background ? SPAN_INTERNAL : SPAN_SERVER, 0,
                                 transaction->spans->caller, exchange->started, text->end);
    if (span == NULL)
        return;
    span->id = text->set->context.span;
    span_put_text(text->set, span, "http.request.method", method);
    span_put_text(text->set, span, "url.full", shown_url(transaction));
    span_put_text(text->set, span, "network.protocol.version", version_name(exchange->version));
    span_put_text(text->set, span, "retort.transaction_id",
                  slice_from(transaction_id(transaction)));
    span_put_text(text->set, span, "retort.result", cache_result_name(outcome->result));
    if (outcome->status > 0)
        span_put_number(span, "http.response.status_code", outcome->status);
    if (outcome->status >= 500 || exchange->state == EXCHANGE_ABORTED)
        span_fail(text->set, span,
                  outcome->error != NULL                ? outcome->error
                  : exchange->state == EXCHANGE_ABORTED ? "the client has left"
                                                        : "");
}

static void add_services(struct spans_text *text, enum step step, uint64_t parent) {
    const struct adapt_chain *chain = transaction_chain(text->transaction, step);
    for (unsigned i = 0; chain != NULL && i < chain->at; i++) {
        const struct adapt_record *record = &chain->records[i];
        const struct adapter_call *call = chain->calls[i];
        uint64_t took = call != NULL && call->figures.last_byte > 0
                            ? call->figures.last_byte * 1000
                            : (uint64_t)record->milliseconds * 1000000;
        struct slice words[] = {chain->reqmod ? SLICE("REQMOD ") : SLICE("RESPMOD "),
                                slice_from(record->service)};
        struct span *span =
            add_span(text, arena_join(&text->transaction->arena, words, 2), SPAN_CLIENT, 0, parent,
                     record->started, record->started + took);
        if (span == NULL)
            return;
        span->id = record->span;
        span_put_text(text->set, span, "retort.service", slice_from(record->service));
        span_put_text(text->set, span, "retort.verdict", slice_from(record->verdict));
        if (call != NULL && call->figures.status > 0)
            span_put_number(span, "retort.icap.status", call->figures.status);
        if (adapt_record_error(record, call) != NULL)
            span_fail(text->set, span, adapt_record_error(record, call));
    }
}

static void add_calls(struct spans_text *text, uint64_t parent) {
    const struct spans *spans = text->transaction->spans;
    for (unsigned i = 0; i < spans->call_count; i++) {
        const struct spans_call *call = &spans->calls[i];
        struct span *span = add_span(text, call->method, SPAN_CLIENT, CALLS_FROM + i, parent,
                                     call->begun, call->ended);
        if (span == NULL)
            return;
        span_put_text(text->set, span, "http.request.method", call->method);
        span_put_text(text->set, span, "server.address", call->origin);
        if (call->status > 0)
            span_put_number(span, "http.response.status_code", call->status);
        else
            span_fail(text->set, span,
                      call->error != NULL ? call->error : "nobody waited for the answer any more");
    }
}

static void add_steps(struct spans_text *text) {
    const struct spans *spans = text->transaction->spans;
    for (enum step step = STEP_RECEIVE; step < STEP_LOG; step++) {
        uint64_t id = trace_context_child(spans->context.span, step);
        if (spans->begun[step] == 0 ||
            add_span(text, slice_from(step_name(step)), SPAN_INTERNAL, step, spans->context.span,
                     spans->begun[step], spans->ended[step]) == NULL)
            continue;
        add_services(text, step, id);
        if (step == STEP_FETCH)
            add_calls(text, id);
    }
}

void spans_end(struct transaction *transaction, uint64_t end) {
    if (spans_sampled(transaction) == NULL)
        return;
    struct spans_text text = {
        .transaction = transaction,
        .set = span_set_new(&transaction->spans->context),
        .offset = clocks_nanoseconds(CLOCK_REALTIME) - spans_now(),
        .end = end,
    };
    transaction->net->counters.requests_traced++;
    add_root(&text);
    add_steps(&text);
    span_exporter_post(transaction->host->span_exporter, &text.set);
}
