#include "adapt/chain.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "event/source.h"
#include "http/head_parser.h"
#include "part.h"

/* Has this service, or one before it, the option bypass? */
static bool may_go_back(const struct adapt_chain *chain) {
    for (unsigned i = 0; i <= chain->at; i++)
        if (chain->services[i]->settings->bypass)
            return true;
    return false;
}

/* The service learns the trace by fields of the request that it is shown. Nothing else sees them. */
static const struct http_head *traced_head(const struct adapt_chain *chain,
                                           const struct trace_fields *fields) {
    struct http_head *head = arena_alloc(chain->arena, sizeof *head);
    http_head_assign(head, chain->message->request);
    http_head_remove_text(head, SLICE("traceparent"));
    http_head_remove_text(head, SLICE("tracestate"));
    if (http_head_add(head, SLICE("traceparent"), fields->parent) && fields->state.length > 0)
        http_head_add(head, SLICE("tracestate"), fields->state);
    return head;
}

static void tell_trace(struct adapt_chain *chain, struct adapter_request *request) {
    struct adapt_trace *trace = chain->message->trace;
    struct trace_context context = trace->context;
    if (context.sampled)
        context.span = trace_context_child(context.span, trace->next++);
    chain->records[chain->at].span = context.span;
    if (trace->how == TRACING_ICAP_OFF)
        return;
    struct trace_fields *fields = arena_alloc(chain->arena, sizeof *fields);
    fields->parent = trace_context_write(&context, arena_alloc(chain->arena, TRACE_CONTEXT_TEXT));
    fields->state = context.state;
    if (trace->how != TRACING_ICAP_MESSAGE)
        request->trace = fields;
    if (trace->how != TRACING_ICAP_HEAD)
        request->request = traced_head(chain, fields);
}

/* Only the last service may trickle: if it changes nothing, the client gets the input of that
 * service. A decoded body may not trickle: the client would get the body as it was before
 * decoding. */
static bool chain_may_trickle(const struct adapt_chain *chain) {
    const struct service_settings *settings = chain->services[chain->at]->settings;
    bool decoded = chain->decoding != NULL && chain->undecodable == NULL;
    return settings->trickle_after > 0 && !chain->quiet && !chain->reqmod && !decoded &&
           !settings->routing && chain->at + 1 == chain->count && chain->message->body != NULL;
}

static const struct trickle_class *chain_trickling(void) {
    PARTS_FOR_EACH (part, trickle)
        return part_table[part]->trickle;
    return NULL;
}

static void chain_on_trickle_timer(struct timer *timer) {
    struct adapt_chain *chain = CONTAINER_OF(timer, struct adapt_chain, trickle_timer);
    CHECK_OBJ(chain, ADAPT_CHAIN_MAGIC);
    if (chain->state == ADAPT_RUNNING && chain->calls[chain->at]->verdict == ADAPTER_PENDING)
        chain_trickling()->begin(chain);
}

/* False: the service need not be asked, because its verdict is remembered. */
static bool ask_service(struct adapt_chain *chain, struct verdict *verdict) {
    struct adapter *adapter = chain->services[chain->at];
    struct adapt_message *message = chain->message;
    struct adapter_request request = {
        .request = message->request,
        .response = chain->reqmod ? NULL : message->response,
        .body = &message->body,
        .path = message->path,
        .client = message->client,
        .transaction_id = message->transaction_id,
        .opt_outs = message->opt_outs,
        .hold = may_go_back(chain),
        .trickle = chain_may_trickle(chain),
        .arena = chain->arena,
    };
    chain->calls[chain->at] = NULL;
    chain->saved[chain->at] = NULL;
    chain->recall = chain->reqmod && message->body == NULL ? recall_begin(&request, adapter) : NULL;
    if (chain->recall != NULL) {
        chain->stage_started = clocks_nanoseconds(CLOCK_MONOTONIC);
        if (recall_find(chain->recall, verdict))
            return false;
    }
    if (message->trace != NULL)
        tell_trace(chain, &request);
    if (request.trickle)
        loop_timer_after(chain->net->loop, &chain->trickle_timer, adapter->settings->trickle_after);
    chain->calls[chain->at] = adapter_call_start(adapter, &request, chain->adapted, &chain->task);
    chain->stage_started = chain->calls[chain->at]->started * 1000;
    return true;
}

/* How long the service took, or who remembered its verdict. */
static uint64_t stage_took(const struct adapt_chain *chain) {
    const struct adapter_call *call = chain->calls[chain->at];
    uint64_t now = call != NULL && call->settled > 0 && !call->broken
                       ? call->settled * 1000
                       : clocks_nanoseconds(CLOCK_MONOTONIC);
    return now > chain->stage_started ? now - chain->stage_started : 0;
}

void adapt_chain_record(struct adapt_chain *chain, const char *verdict) {
    struct adapt_record *entry = &chain->records[chain->at];
    entry->service = chain->services[chain->at]->settings->name;
    entry->verdict = verdict;
    entry->error = NULL;
    entry->changed = false;
    entry->started = chain->stage_started;
    entry->milliseconds = (unsigned)((stage_took(chain) + 500000) / 1000000);
}

static struct http_head **head_slot(struct adapt_chain *chain) {
    return chain->reqmod ? &chain->message->request : &chain->message->response;
}

/* Keeps the head for the case that its service fails later. */
static void save_head(struct adapt_chain *chain) {
    if (!chain->services[chain->at]->settings->bypass)
        return;
    chain->saved[chain->at] = arena_alloc(chain->arena, sizeof **chain->saved);
    http_head_assign(chain->saved[chain->at], *head_slot(chain));
}

/* A head that came back. */
struct given_head {
    const struct http_head *head; /* NULL: none did */
    bool lasts;                   /* its bytes need not be copied */
};

static struct given_head head_of_call(const struct adapter_call *call) {
    const struct adapter_result *result = &call->result;
    return (struct given_head){result->head_given ? call->adapted : NULL, result->head_lasts};
}

static void copy_head(struct adapt_chain *chain, const struct given_head *given,
                      struct http_head *to) {
    if (given->lasts)
        http_head_assign(to, given->head);
    else
        http_head_copy(to, given->head, arena_alloc(chain->arena, http_head_size(given->head)));
}

/* The adapted head replaces the old one. Framing stays ours to decide. The version of a request
 * stays that of its sender (RFC 9110 §2.5), since the sender is answered in it. */
static void chain_take_head(struct adapt_chain *chain, struct given_head given,
                            struct http_head **slot) {
    if (given.head != NULL) {
        unsigned version = *slot != NULL ? (*slot)->version : given.head->version;
        if (*slot == NULL)
            *slot = arena_alloc(chain->arena, sizeof **slot);
        copy_head(chain, &given, *slot);
        (*slot)->version = version;
    }
    if (*slot == NULL)
        return;
    http_head_remove_hop_by_hop(*slot);
    if (!chain->reqmod || slot == &chain->message->response || given.head == NULL)
        http_head_remove(*slot, HTTP_CONTENT_LENGTH);
}

/* The service has changed the message: takes the new one. */
static void chain_modified(struct adapt_chain *chain, struct given_head head, struct source *body) {
    const struct adapter *adapter = chain->services[chain->at];
    chain->records[chain->at].changed = true;
    chain->modified = true;
    chain->told |= adapter->class->client_fields(adapter);
    save_head(chain);
    chain_take_head(chain, head, head_slot(chain));
    chain->message->body = body;
}

static enum adapt_state satisfied(struct adapt_chain *chain, struct given_head head,
                                  struct source *body) {
    chain->modified = true;
    chain_take_head(chain, head, &chain->message->response);
    chain->message->body = body;
    return ADAPT_SATISFIED;
}

void adapt_chain_bypass(struct adapt_chain *chain, const char *error) {
    adapter_bypassed(chain->services[chain->at], error);
    adapt_chain_record(chain, "BYPASSED");
    chain->records[chain->at].error = error;
    chain->bypassed = true;
}

/* Is the body behind this service the same as the body before it? */
static bool has_passed_on(const struct adapter_call *call) {
    return call == NULL /* it was not asked */ || call->verdict == ADAPTER_UNMODIFIED ||
           call->verdict == ADAPTER_FAILED;
}

/* The service that broke its body off first: a later one's body broke off because of it. NULL when
 * no service did. */
static struct adapter_call *culprit(struct adapt_chain *chain, unsigned *at) {
    for (unsigned i = chain->at; i-- > 0;) {
        struct adapter_call *call = chain->calls[i];
        if (has_passed_on(call))
            continue;
        if (!call->broken)
            return NULL;
        *at = i;
        if (!adapter_call_lost_body(call))
            return call;
    }
    return NULL;
}

/* Ends the calls of the services from that one on. They will be asked again, or never. */
static void forget_calls(struct adapt_chain *chain, unsigned from) {
    for (unsigned i = chain->at + 1; i-- > from;) {
        if (chain->calls[i] != NULL)
            adapter_call_end(chain->calls[i]);
        chain->calls[i] = NULL;
    }
}

/* Has some service from that one on changed the message? */
static bool is_changed(const struct adapt_chain *chain, unsigned from) {
    for (unsigned i = from; i < chain->at; i++)
        if (chain->records[i].changed)
            return true;
    return false;
}

/* Closes the decoding: the body that it decoded is no longer there. */
static void drop_decoding(struct adapt_chain *chain) {
    if (chain->decoding == NULL)
        return;
    decoding_close(chain->decoding);
    chain->decoding = NULL;
    chain->decoded_at = 0;
    chain->undecodable = NULL;
    chain->before = chain->before_codes;
}

/* A service failed when the next ones had its output already: goes back to the message as it was
 * before that service. */
static bool go_back(struct adapt_chain *chain) {
    unsigned at = 0;
    struct source *body;
    struct adapter_call *call = culprit(chain, &at);
    if (call == NULL || !chain->services[at]->settings->bypass)
        return false;
    const char *error = call->error;
    forget_calls(chain, at + 1);
    if (at < chain->decoded_at)
        drop_decoding(chain);
    if (!adapter_call_recover(call, &body))
        return false;
    if (chain->saved[at] != NULL)
        http_head_assign(*head_slot(chain), chain->saved[at]);
    chain->message->body = body;
    chain->at = at;
    chain->modified = is_changed(chain, 0);
    adapt_chain_bypass(chain, error);
    return true;
}

enum adapt_state adapt_chain_give_up(struct adapt_chain *chain, const char *error) {
    adapt_chain_record(chain, "FAILED");
    chain->records[chain->at].error = error;
    chain->error = error;
    chain->failed_service = chain->services[chain->at]->settings->name;
    return ADAPT_FAILED;
}

/* The body can't be decoded, and this service wants it decoded. */
static enum adapt_state without_decoding(struct adapt_chain *chain) {
    if (!chain->services[chain->at]->settings->bypass)
        return adapt_chain_give_up(chain, chain->undecodable);
    adapt_chain_bypass(chain, chain->undecodable);
    return ADAPT_RUNNING;
}

static bool decoding_failed(const struct adapt_chain *chain) {
    return chain->decoding != NULL && chain->undecodable == NULL &&
           decoding_error(chain->decoding) != NULL;
}

/* The body could not be decoded to its end: goes back to the original, at the first service that
 * wanted it decoded. */
static enum adapt_state take_back_decoding(struct adapt_chain *chain) {
    forget_calls(chain, chain->decoded_at);
    for (unsigned i = 0; i < chain->decoded_at; i++)
        if (chain->calls[i] != NULL)
            adapter_call_forget_reader(chain->calls[i]);
    chain->undecodable = decoding_error(chain->decoding);
    chain->at = chain->decoded_at;
    chain->modified = is_changed(chain, 0);
    if (!decoding_restore(chain->decoding, chain->message))
        return adapt_chain_give_up(chain, chain->undecodable);
    chain->before = chain->before_codes;
    return without_decoding(chain);
}

static enum adapt_state chain_failed(struct adapt_chain *chain, struct adapter_call *call) {
    const char *error = call->error;
    if (chain->services[chain->at]->settings->bypass &&
        adapter_call_recover(call, &chain->message->body)) {
        adapt_chain_bypass(chain, error);
        return ADAPT_RUNNING;
    }
    if (adapter_call_lost_body(call) && decoding_failed(chain))
        return take_back_decoding(chain);
    if (adapter_call_lost_body(call) && go_back(chain))
        return ADAPT_RUNNING;
    return adapt_chain_give_up(chain, error);
}

/* The services that a service with `routing` names replace those that would follow. */
static void reroute(struct adapt_chain *chain, struct slice names) {
    if (names.base == NULL)
        return;
    struct slice rest = names, name;
    chain->count = chain->at + 1;
    while (chain->count < ADAPT_CHAIN_MAX && slice_next_element(&rest, &name)) {
        struct adapter *service = adapt_set_find(chain->set, chain->point, name);
        if (service != NULL)
            chain->services[chain->count++] = service;
        else
            log_warn("icap service %s: X-Next-Services names \"%.*s\", which is not an "
                     "icap_service of the same point",
                     chain->services[chain->at]->settings->name, SLICE_PRINT(name));
    }
}

/* The source to read the call's body from. If the answer may be remembered, it is noted while it is
 * read. */
static struct source *take_body(struct adapt_chain *chain, struct adapter_call *call) {
    struct source *body = adapter_call_body(call);
    return chain->recall == NULL ? body : recall_note(chain->recall, call, body);
}

/* Notes that the last service that answered could not do its work. */
void adapt_chain_note_inability(struct adapt_chain *chain, const struct adapter_call *call) {
    struct adapt_record *entry = &chain->records[chain->at];
    if (call->result.unable == NULL)
        return;
    chain->unable = true;
    entry->error = arena_printf(chain->arena, "it could not: %s", call->result.unable).base;
    if (call->verdict == ADAPTER_UNMODIFIED)
        entry->verdict = "UNABLE";
}

static void take_modified(struct adapt_chain *chain, struct adapter_call *call) {
    adapt_chain_record(chain, "MODIFIED");
    adapt_chain_note_inability(chain, call);
    chain_modified(chain, head_of_call(call), take_body(chain, call));
    reroute(chain, slice_from(call->result.next_services));
}

static enum adapt_state take_verdict(struct adapt_chain *chain, struct adapter_call *call) {
    struct counters *counters = &chain->net->counters;
    switch (call->verdict) {
    case ADAPTER_UNMODIFIED:
        counters->icap_unmodified++;
        adapt_chain_record(chain, "UNMODIFIED");
        adapt_chain_note_inability(chain, call);
        chain->message->body = take_body(chain, call);
        reroute(chain, slice_from(call->result.next_services));
        return ADAPT_RUNNING;
    case ADAPTER_MODIFIED:
        counters->icap_modified++;
        take_modified(chain, call);
        return ADAPT_RUNNING;
    case ADAPTER_SATISFIED:
        counters->icap_satisfied++;
        adapt_chain_record(chain, "SATISFIED");
        return satisfied(chain, head_of_call(call), take_body(chain, call));
    default: return chain_failed(chain, call);
    }
}

/* Parses a remembered verdict as it was parsed when it came. Its bytes are in the arena. */
static struct given_head parse_remembered(struct adapt_chain *chain,
                                          const struct verdict *verdict) {
    struct slice text = verdict->head;
    struct http_head *head = arena_alloc(chain->arena, sizeof *head);
    ssize_t used = verdict->kind == ADAPTER_SATISFIED
                       ? http_head_parse_response(head, text.base, text.length, 0)
                       : http_head_parse_request(head, text.base, text.length, 0);
    ASSERT(used > 0 && (size_t)used == text.length);
    return (struct given_head){head, true};
}

static struct source *remembered_body(struct adapt_chain *chain, const struct verdict *verdict) {
    if (!verdict->has_body)
        return NULL;
    struct bytes_source *bytes = arena_alloc(chain->arena, sizeof *bytes);
    return bytes_source_start(bytes, verdict->body, chain->net->loop);
}

static enum adapt_state use_verdict(struct adapt_chain *chain, const struct verdict *verdict) {
    if (verdict->kind == ADAPTER_SATISFIED) {
        adapt_chain_record(chain, "REMEMBERED_SATISFIED");
        return satisfied(chain, parse_remembered(chain, verdict), remembered_body(chain, verdict));
    }
    adapt_chain_record(chain, verdict->kind == ADAPTER_MODIFIED ? "REMEMBERED_MODIFIED"
                                                                : "REMEMBERED_UNMODIFIED");
    if (verdict->kind == ADAPTER_MODIFIED)
        chain_modified(chain, parse_remembered(chain, verdict), NULL);
    if (verdict->routed)
        reroute(chain, verdict->next_services);
    return ADAPT_RUNNING;
}

/* If no service has changed the decoded body, the message gets the body as it was before
 * decoding. */
static void settle_decoding(struct adapt_chain *chain) {
    if (chain->decoding == NULL || chain->undecodable != NULL)
        return;
    if (is_changed(chain, chain->decoded_at) ||
        !decoding_restore(chain->decoding, chain->message)) {
        chain->modified = true;
        decoding_commit(chain->decoding);
        return;
    }
    chain->before = chain->before_codes;
    chain->net->counters.adapt_decode_restored++;
}

/* The challenge of a proxy is for the client, whatever services made of the response. */
void adapt_chain_give_back_challenge(const struct adapt_message *message) {
    if (message->client.proxy_authenticate.length > 0)
        http_head_set(message->response, HTTP_PROXY_AUTHENTICATE,
                      message->client.proxy_authenticate);
}

static void settle_head(struct adapt_chain *chain) {
    if (chain->reqmod)
        return;
    settle_decoding(chain);
    if (is_changed(chain, 0))
        representation_changed(chain->message->response, &chain->before, chain->arena);
    adapt_chain_give_back_challenge(chain->message);
}

/* The chain is done. Whoever asked takes the message now, so the chain can't go back any more. */
static void chain_finish(struct adapt_chain *chain) {
    for (unsigned i = 0; i < chain->at; i++)
        if (chain->calls[i] != NULL)
            adapter_call_commit(chain->calls[i]);
    if (chain->state == ADAPT_RUNNING) {
        chain->state = ADAPT_DONE;
        settle_head(chain);
    }
    chain->result = chain->message->body;
    loop_defer(chain->net->loop, chain->waker);
}

/* Begins to decode the body in front of the first service that wants it decoded. */
static void begin_decoding(struct adapt_chain *chain) {
    const struct service_settings *settings = chain->services[chain->at]->settings;
    if (chain->decoding != NULL)
        return;
    chain->decoding = decoding_begin(chain->message, settings, chain->arena, chain->net);
    if (chain->decoding == NULL)
        return;
    chain->decoded_at = chain->at;
    chain->before_codes = chain->before;
    representation_note(&chain->before, chain->message->response);
}

static bool has_opted_out(const struct adapt_chain *chain) {
    const struct adapt_message *message = chain->message;
    return message->opt_outs != NULL &&
           adapt_opt_out_has(*message->opt_outs, chain->services[chain->at]->module);
}

static void chain_leave_out(struct adapt_chain *chain) {
    chain->calls[chain->at] = NULL;
    chain->saved[chain->at] = NULL;
    chain->stage_started = clocks_nanoseconds(CLOCK_MONOTONIC);
    chain->left_out = true;
    adapt_chain_record(chain, "OPTED_OUT");
}

/* Asks the next service. Without one the chain has come to its end. */
static void chain_go_on(struct adapt_chain *chain) {
    struct verdict verdict;
    while (chain->state == ADAPT_RUNNING && chain->at < chain->count) {
        bool decoded = !chain->reqmod && chain->services[chain->at]->settings->decode;
        if (has_opted_out(chain)) {
            chain_leave_out(chain);
        } else if (!decoded || chain->undecodable == NULL) {
            if (decoded)
                begin_decoding(chain);
            if (ask_service(chain, &verdict))
                return;
            chain->state = use_verdict(chain, &verdict);
        } else {
            chain->calls[chain->at] = NULL;
            chain->stage_started = clocks_nanoseconds(CLOCK_MONOTONIC);
            chain->state = without_decoding(chain);
        }
        chain->at++;
    }
    chain_finish(chain);
}

/* One of the services has answered. */
static void on_verdict(struct task *task) {
    struct adapt_chain *chain = CONTAINER_OF(task, struct adapt_chain, task);
    CHECK_OBJ(chain, ADAPT_CHAIN_MAGIC);
    bool late = chain->trickle != NULL && chain->at < chain->count;
    if (chain->state != ADAPT_RUNNING && !late)
        return;
    struct adapter_call *call = chain->calls[chain->at];
    if (call->verdict == ADAPTER_PENDING)
        return;
    timer_cancel(&chain->net->loop->timers, &chain->trickle_timer);
    if (late) {
        chain_trickling()->take_late_verdict(chain, call);
        return;
    }
    chain->state = take_verdict(chain, call);
    chain->at++;
    chain_go_on(chain);
}

void adapt_chain_start(struct adapt_chain *chain, const struct adapt_set *set,
                       struct adapter *const *services, unsigned count,
                       struct adapt_message *message, struct arena *arena, struct net_context *net,
                       struct task *waker) {
    ASSERT(count > 0 && count <= ADAPT_CHAIN_MAX);
    INIT_OBJ(chain, ADAPT_CHAIN_MAGIC);
    memcpy(chain->services, services, count * sizeof *services);
    chain->count = count;
    chain->set = set;
    chain->point = services[0]->settings->point;
    chain->state = ADAPT_RUNNING;
    chain->message = message;
    chain->reqmod = message->response == NULL;
    chain->arena = arena;
    chain->net = net;
    chain->waker = waker;
    chain->adapted = arena_alloc(arena, sizeof *chain->adapted);
    task_init(&chain->task, on_verdict);
    timer_init(&chain->trickle_timer, chain_on_trickle_timer);
    if (!chain->reqmod)
        representation_note(&chain->before, message->response);
    chain_go_on(chain);
}

void adapt_chain_close(struct adapt_chain *chain) {
    if (chain->magic != ADAPT_CHAIN_MAGIC)
        return;
    task_cancel(&chain->task);
    if (chain->result != NULL && chain->result == chain->message->body)
        source_close(&chain->message->body); /* nobody came to take it */
    timer_cancel(&chain->net->loop->timers, &chain->trickle_timer);
    if (chain->trickle != NULL)
        chain_trickling()->close(chain->trickle);
    if (chain->recall != NULL)
        recall_end(chain->recall);
    /* The calls end from the last to the first, since each one reads from the one before it, and
     * one of them reads from the decoding. */
    for (unsigned i = chain->at < ADAPT_CHAIN_MAX ? chain->at + 1 : chain->at; i-- > 0;) {
        if (chain->calls[i] != NULL)
            adapter_call_end(chain->calls[i]);
        if (i == chain->decoded_at)
            drop_decoding(chain);
    }
    chain->magic = 0;
}

uint64_t adapt_chain_received(const struct adapt_chain *chain) {
    CHECK_OBJ(chain, ADAPT_CHAIN_MAGIC);
    const struct adapter_call *call = chain->at < chain->count ? chain->calls[chain->at] : NULL;
    return call == NULL || chain->state != ADAPT_RUNNING ? 0 : adapter_call_kept(call);
}

void adapt_chain_keep_quiet(struct adapt_chain *chain) {
    CHECK_OBJ(chain, ADAPT_CHAIN_MAGIC);
    timer_cancel(&chain->net->loop->timers, &chain->trickle_timer);
    chain->quiet = true;
}
