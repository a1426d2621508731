#include "part.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "server.h"
#include "spans/exporter.h"
#include "spans/settings.h"
#include "spans/spans.h"
#include "transaction/access.h"
#include "transaction/transaction.h"

/*
 * To which trace a transaction belongs: that of its caller, or one of its own. A caller in tracing.trust
 * decides whether its request is sampled, and its trace goes on here. The fields of all other callers are
 * removed: they would let a client have its requests traced, here and at the origin, and write into traces
 * that are not its own.
 */

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
static void join_trace(struct span_notes *notes, struct trace_ids *ids,
                       const struct trace_context *caller) {
    notes->base.context = *caller;
    if (!caller->sampled)
        return;
    notes->caller = caller->span;
    notes->base.context.span = trace_ids_draw(ids) | 1;
}

/* Takes the fields off the request. */
static void joining_decide(struct transaction *transaction, struct trace_ids *ids) {
    const struct tracing_settings *tracing = tracing_settings_of(transaction->settings);
    struct span_notes *notes = span_notes_begin(transaction);
    struct trace_context caller;
    if (transaction->exchange->error_status == 0 && take_context(transaction, &caller)) {
        join_trace(notes, ids, &caller);
    } else {
        trace_context_new(&notes->base.context, ids);
        notes->base.context.sampled = is_chosen(tracing, ids);
    }
    notes->base.adapt =
        (struct adapt_trace){notes->base.context, tracing->icap, SPANS_SERVICES_FROM};
}

/* The part spans: what a traced transaction has noted (transaction/spans.h) becomes spans, which go to the
 * collector. */

/* ---- the server -------------------------------------------------------------------------------- */

static void spans_open(struct server *server) {
    server->parts[PART_SPANS] = span_exporter_new();
    span_exporter_configure(server->parts[PART_SPANS], server->settings);
}

static void spans_change(struct server *server, struct settings *settings) {
    span_exporter_configure(server->parts[PART_SPANS], settings);
}

static void spans_close(struct server *server) {
    struct span_exporter *exporter = server->parts[PART_SPANS];
    server->parts[PART_SPANS] = NULL;
    span_exporter_free(&exporter);
}

/* ---- a transaction ----------------------------------------------------------------------------- */

/* Spans in the making. `offset`: what is added to the monotonic clock. */
struct spans_text {
    struct transaction *transaction;
    struct span_set *set;
    uint64_t offset, end;
};

/* NULL: there are too many. */
static struct span *add_span(struct spans_text *text, struct slice name, enum span_kind kind,
                             unsigned number, uint64_t parent, uint64_t begun, uint64_t ended) {
    struct span *span = span_set_add(text->set, name, kind);
    if (span == NULL)
        return NULL;
    if (ended > text->end)
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
    if (!tracing_settings_of(transaction->settings)->queries)
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
                                 span_notes(transaction)->caller, exchange->started, text->end);
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
    struct asked_service list[ASKED_MAX];
    unsigned count = transaction_asked(text->transaction, step, list);
    for (unsigned i = 0; i < count; i++) {
        const struct asked_service *asked = &list[i];
        const struct asked_figures *figures = asked->figures;
        uint64_t took = figures != NULL && figures->last_byte > 0
                            ? figures->last_byte * 1000
                            : (uint64_t)asked->milliseconds * 1000000;
        struct slice words[] = {asked->reqmod ? SLICE("REQMOD ") : SLICE("RESPMOD "),
                                slice_from(asked->service)};
        struct span *span = add_span(text, arena_join(&text->transaction->arena, words, 2),
                                     SPAN_CLIENT, 0, parent, asked->started, asked->started + took);
        if (span == NULL)
            return;
        span->id = asked->span;
        span_put_text(text->set, span, "retort.service", slice_from(asked->service));
        span_put_text(text->set, span, "retort.verdict", slice_from(asked->verdict));
        if (figures != NULL && figures->status > 0)
            span_put_number(span, "retort.icap.status", figures->status);
        if (asked->error != NULL)
            span_fail(text->set, span, asked->error);
    }
}

/* `end`: of FETCH. */
static void add_calls(struct spans_text *text, uint64_t parent, uint64_t end) {
    const struct span_notes *spans = span_notes(text->transaction);
    for (unsigned i = 0; i < spans->call_count; i++) {
        const struct spans_call *call = &spans->calls[i];
        struct span *span = add_span(text, call->method, SPAN_CLIENT, SPANS_CALLS_FROM + i, parent,
                                     call->begun, call->ended != 0 ? call->ended : end);
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
    const uint64_t *begun = text->transaction->times->begun;
    uint64_t parent = text->set->context.span;
    for (enum step step = STEP_RECEIVE, next; step < STEP_LOG; step = next) {
        for (next = step + 1; begun[next] == 0;)
            next++;
        if (add_span(text, slice_from(step_name(step)), SPAN_INTERNAL, step, parent, begun[step],
                     begun[next]) == NULL)
            continue;
        uint64_t id = trace_context_child(parent, step);
        add_services(text, step, id);
        if (step == STEP_FETCH)
            add_calls(text, id, begun[next]);
    }
}

/* What a worker has. */
struct spans_host {
    struct span_exporter *exporter; /* of the process */
    struct trace_ids ids;
};

static void spans_join(struct transaction_host *host, void *state) {
    struct spans_host *own = xcalloc(1, sizeof *own);
    own->exporter = state;
    trace_ids_init(&own->ids);
    host->parts[PART_SPANS] = own;
}

static void spans_leave(struct transaction_host *host) {
    free(host->parts[PART_SPANS]);
    host->parts[PART_SPANS] = NULL;
}

static void spans_trace(struct transaction *transaction) {
    struct spans_host *own = transaction->host->parts[PART_SPANS];
    joining_decide(transaction, &own->ids);
}

void spans_make(struct transaction *transaction, uint64_t end) {
    const struct spans_host *own = transaction->host->parts[PART_SPANS];
    struct spans_text text = {
        .transaction = transaction,
        .set = span_set_new(&transaction->spans->context),
        .offset = clocks_nanoseconds(CLOCK_REALTIME) - clocks_nanoseconds(CLOCK_MONOTONIC),
        .end = end,
    };
    add_root(&text);
    add_steps(&text);
    span_exporter_post(own->exporter, &text.set);
}

const struct part part_spans = {
    .process =
        {
            .open = spans_open,
            .change = spans_change,
            .write_out = spans_close,
            .close = spans_close,
        },
    .worker =
        {
            .join = spans_join,
            .leave = spans_leave,
            .trace = spans_trace,
        },
    .settings = &spans_part_settings,
};
