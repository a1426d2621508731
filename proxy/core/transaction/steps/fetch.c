#include "transaction/steps/fetch.h"

#include "base/assert.h"
#include "cache/vouching.h"
#include "http/credentials.h"
#include "http/date.h"
#include "transaction/bumped.h"
#include "transaction/fail.h"
#include "transaction/forwarding.h"
#include "transaction/head_changes.h"
#include "transaction/internal.h"
#include "transaction/invalidate.h"
#include "transaction/next_hop.h"
#include "transaction/refresh.h"
#include "transaction/request_rules.h"
#include "transaction/reverse_map.h"
#include "transaction/spans.h"
#include "transaction/stored_part.h"
#include "transaction/transaction.h"

#include <stdio.h>

/* FETCH: ask the origin. The request goes out in the form that RFC 9110 §7.6 wants of an
 * intermediary. The call itself tries again over a fresh connection; this step tries another server
 * of a group. */

/* Does any service adapt responses before the cache, for this request and any type of response? */
static bool has_respmod(struct transaction *transaction) {
    return transaction->settings->asks_at[ADAPT_RESPMOD_PRECACHE] &&
           transaction->host->adapting->wants_response(transaction);
}

static bool has_services(struct transaction *transaction) {
    return has_respmod(transaction) || adapting_behind_cache(transaction);
}

/* The request that goes to the origin. */
static const struct http_head *outgoing(const struct transaction *transaction) {
    return transaction->outgoing != NULL ? &transaction->outgoing->head : transaction->request.head;
}

static void remove_conditions(struct http_head *head) {
    http_head_remove(head, HTTP_IF_NONE_MATCH);
    http_head_remove(head, HTTP_IF_MODIFIED_SINCE);
}

/* If a response is stored, the request asks whether it is still valid. Otherwise a cacheable
 * request asks for the whole response, and the client's own conditions are answered from what comes
 * back. */
static void set_conditions(struct transaction *transaction, struct http_head *head) {
    if (!transaction->caching.allowed)
        return;
    /* A request for a part goes on with the client's conditions. But a 304 that confirms what is
     * stored must be the answer to the stored validators. */
    if (http_head_has(head, HTTP_RANGE) && !transaction->lookup.revalidating)
        return;
    if (head->method_id == HTTP_METHOD_GET)
        remove_conditions(head);
    if (transaction->lookup.part != NULL && !has_respmod(transaction) &&
        stored_part_ask_for_rest(transaction, head)) {
        transaction->fetch.completing = true;
        return;
    }
    if (!transaction->lookup.revalidating)
        return;
    remove_conditions(head);
    const struct object *object = transaction->lookup.object;
    if (object->etag_length > 0)
        http_head_set(head, HTTP_IF_NONE_MATCH, object_etag(object));
    if (object_last_modified(object) != 0) {
        char date[HTTP_DATE_LENGTH + 1];
        http_date_format(date, object_last_modified(object));
        http_head_set(head, HTTP_IF_MODIFIED_SINCE,
                      arena_slice(&transaction->arena, slice_make(date, HTTP_DATE_LENGTH)));
    }
}

/* Services adapt whole messages, so the request asks for no part: a part of an image can't be made
 * gray. */
static void remove_ranges(struct transaction *transaction, struct http_head *head) {
    if (!http_head_has(head, HTTP_RANGE) || !has_services(transaction))
        return;
    http_head_remove(head, HTTP_RANGE);
    http_head_remove(head, HTTP_IF_RANGE);
    transaction->fetch.ranges_removed = true;
}

/* Sets the framing of the body: chunked if its length is not known. False: the head has no room for
 * it. Without it, the origin would take the body for the next request. */
static bool frame_body(struct transaction *transaction, struct http_head *head, bool *chunked) {
    struct source *body = transaction->request.body;
    *chunked = body != NULL && body->length < 0;
    http_head_remove(head, HTTP_TRANSFER_ENCODING);
    if (body == NULL) {
        bool expects_length = head->method_id == HTTP_METHOD_POST ||
                              head->method_id == HTTP_METHOD_PUT ||
                              head->method_id == HTTP_METHOD_PATCH;
        http_head_remove(head, HTTP_CONTENT_LENGTH);
        return !expects_length || http_head_set(head, HTTP_CONTENT_LENGTH, SLICE("0"));
    }
    if (!*chunked)
        return http_head_set(head, HTTP_CONTENT_LENGTH,
                             arena_printf(&transaction->arena, "%ld", (long)body->length));
    http_head_remove(head, HTTP_CONTENT_LENGTH);
    return http_head_set(head, HTTP_TRANSFER_ENCODING, SLICE("chunked"));
}

/* An interim response such as 103 goes to the client as soon as it comes (RFC 8297). */
static void on_interim(void *arg, const struct http_head *head) {
    struct transaction *transaction;
    CAST_OBJ(transaction, arg, TRANSACTION_MAGIC);
    struct http_head *interim = arena_alloc(&transaction->arena, sizeof *interim);
    http_head_assign(interim, head);
    http_head_remove_hop_by_hop(interim);
    http_head_remove_framing(interim);
    if (transaction->fetch.call != NULL)
        transaction->fetch.version = slice_from(transaction->fetch.call->class->version);
    forwarding_add_via(transaction, interim);
    if (transaction->exchange != NULL)
        exchange_interim(transaction->exchange, interim);
}

/* Removes the fields that end at this hop, but keeps those of an upgrade that we pass on. */
static void remove_hop_by_hop(struct transaction *transaction, struct http_head *head) {
    http_head_remove_hop_by_hop(head);
    if (transaction->request.kind != REQUEST_UPGRADE)
        return;
    http_head_set(head, HTTP_UPGRADE, transaction->request.upgrade);
    http_head_set(head, HTTP_CONNECTION, SLICE("Upgrade"));
}

/* What proves a proxy is of the next proxy alone (RFC 9110 §11.7), and never stored (RFC 9111 §3.1).
 * From an origin it would pass for a proof of ours. A 407 asks the client. */
static void remove_proofs_of_proxies(struct http_head *response) {
    http_head_remove_text(response, SLICE("Proxy-Authentication-Info"));
    if (response->status != 407)
        http_head_remove(response, HTTP_PROXY_AUTHENTICATE);
}

/* Asks for trailers if the client takes them and no service is between, since services do not know
 * trailers. The trailers of requests are dropped. */
static char *ask_for_trailers(struct transaction *transaction, struct http_head *head) {
    http_head_remove(head, HTTP_TRAILER);
    transaction->fetch.trailers = transaction->exchange->takes_trailers &&
                                  transaction->request.kind != REQUEST_UPGRADE &&
                                  !has_services(transaction);
    if (!transaction->fetch.trailers)
        return NULL;
    http_head_set(head, HTTP_TE, SLICE("trailers"));
    http_head_set(head, HTTP_CONNECTION, SLICE("TE"));
    return arena_alloc(&transaction->arena, CHUNKED_TRAILERS_MAX);
}

static bool is_repeatable(const struct transaction *transaction) {
    return transaction->request.kind != REQUEST_UPGRADE && transaction->request.body == NULL &&
           http_method_is_idempotent(outgoing(transaction)->method_id);
}

/* The parent gets our credentials. Those that the client sent were for us. */
static void show_credentials(struct transaction *transaction, struct http_head *head) {
    const struct route *route = transaction->fetch.route;
    http_head_remove(head, HTTP_PROXY_AUTHORIZATION);
    if (!route_asks_parent(transaction, route) || route->origins->credentials == NULL)
        return;
    char *value = arena_alloc(&transaction->arena, HTTP_CREDENTIALS_VALUE);
    http_head_set(head, HTTP_PROXY_AUTHORIZATION,
                  http_credentials_write(route->origins->credentials, value));
}

/* RFC 9110 §3.3: "Some non-standard HTTP extensions (e.g., [RFC4559]) have been known to violate
 * this requirement, resulting in security and interoperability problems." With NTLM and Negotiate,
 * many servers take who has proved himself once for the sender of all that follows on the
 * connection. */
static bool may_prove_connection(const struct http_head *head) {
    static const char *const schemes[] = {"NTLM", "Negotiate"};
    const struct http_field *field = http_head_find(head, HTTP_AUTHORIZATION);
    for (; field != NULL; field = http_head_find_next(head, HTTP_AUTHORIZATION, field))
        for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
            if (slice_starts_with_nocase(field->value, slice_from(schemes[i])))
                return true;
    return false;
}

/* Requests that a connection is to be used for alone go by HTTP/1.1. */
static bool needs_own_connection(const struct transaction *transaction,
                                 const struct http_head *head) {
    return transaction->request.kind == REQUEST_UPGRADE || head->method_id == HTTP_METHOD_CONNECT ||
           may_prove_connection(head);
}

/* The request as HTTP/1.1 writes it, or, where another protocol may carry it, as a head. */
static void fetch_set_head(struct transaction *transaction, const struct http_head *head,
                           struct origin_request *request) {
    struct arena *arena = &transaction->arena;
    if (request->protocols == ORIGIN_HTTP1) {
        request->head = http_head_text(head, http_head_write_request, arena);
        return;
    }
    struct http_head *fields = arena_alloc(arena, sizeof *fields);
    http_head_assign(fields, head);
    request->fields = fields;
    request->arena = arena;
}

/* The origin speaks HTTP/2, but not for this request (RFC 9113 §7, HTTP_1_1_REQUIRED). */
static void on_http1(void *arg, struct origin_request *request) {
    struct transaction *transaction;
    struct aim aim = {.tunnel = SLICE("")};
    CAST_OBJ(transaction, arg, TRANSACTION_MAGIC);
    route_aim(transaction, &aim);
    aim.protocols = ORIGIN_HTTP1;
    next_hop_set(transaction, &aim, request);
    request->client = NULL; /* the name was looked up for it before */
    if (request->security != NULL)
        tls_client_take(request->security);
    if (request->proxy.tls != NULL)
        tls_client_take(request->proxy.tls);
}

/* The slot forgets the member with the end of the response. */
static void fetch_note_server(struct transaction *transaction) {
    const struct route *route = transaction->fetch.route;
    if (route->map == NULL || route->map->origins == NULL)
        return;
    struct slice text = slice_from(transaction->fetch.slot->member->text);
    ASSERT(url_parse(&transaction->fetch.server, arena_slice(&transaction->arena, text)));
}

/* The head for the next hop: without what was for us, and with what the hop has to know. False: the
 * request can't be made as the rules for its fields want it. */
static bool fetch_make_head(struct transaction *transaction, const struct aim *to,
                            struct http_head *head, struct origin_request *request) {
    http_head_assign(head, outgoing(transaction));
    remove_hop_by_hop(transaction, head);
    http_head_remove(head, HTTP_EXPECT);
    show_credentials(transaction, head);
    head->target = to->target;
    http_head_set(head, HTTP_HOST, to->host_header);
    remove_ranges(transaction, head);
    set_conditions(transaction, head);
    request->trailer_space = ask_for_trailers(transaction, head);
    forwarding_tell_origin(transaction, head);
    if (transaction->spans != NULL)
        transaction->spans->class->tell_origin(transaction, head);
    bool fits = !transaction->settings->changes_outgoing ||
                transaction->settings->head_changes->outgoing(transaction, head);
    return fits && frame_body(transaction, head, &request->chunked);
}

/* The request but for its head and the hop that it goes to. */
static struct origin_request fetch_request(struct transaction *transaction) {
    const struct settings *settings = transaction->settings;
    bool upgrade = transaction->request.kind == REQUEST_UPGRADE;
    return (struct origin_request){
        .body = transaction->request.body,
        .upgrade = upgrade ? transaction->request.upgrade : slice_make("", 0),
        .on_interim = on_interim,
        .interim_arg = transaction,
        .on_http1 = on_http1,
        .http1_arg = transaction,
        .repeatable = is_repeatable(transaction),
        .slot = transaction->fetch.slot,
        .deadline = transaction->fetch.deadline,
        .connect_timeout = settings->origin.connect_timeout,
        .first_byte_timeout = settings->origin.first_byte_timeout,
        .read_timeout = settings->origin.read_timeout,
        .idle_timeout = settings->origin.idle_timeout,
        .max_head = settings->origin.max_head,
        .max_idle = settings->origin.max_idle,
    };
}

static void fetch_send(struct transaction *transaction, const struct origin_request *request) {
    struct arena *arena = &transaction->arena;
    transaction->fetch.asked_at = transaction->net->loop->now;
    /* A stored response counts from the moment when it was looked up. So the answer of the origin
     * does not bring back what has been purged since. */
    if (transaction->lookup.object == NULL && transaction->lookup.part == NULL)
        storing_note_moment(transaction);
    transaction->fetch.call = arena_alloc(arena, sizeof *transaction->fetch.call);
    origin_call_start(transaction->fetch.call, transaction->net, transaction->host->origins,
                      request, arena_alloc(arena, sizeof *transaction->response.head),
                      &transaction->task);
}

/* False as fetch_make_head. */
static bool fetch_start_call(struct transaction *transaction) {
    struct aim aim = {.tunnel = SLICE("")};
    struct origin_request request = fetch_request(transaction);
    struct http_head head;
    route_aim(transaction, &aim);
    fetch_note_server(transaction);
    if (!fetch_make_head(transaction, &aim, &head, &request)) {
        if (transaction->spans != NULL)
            transaction->spans->class->forget_call(transaction);
        return false;
    }
    request.method = head.method_id;
    request.used_up = may_prove_connection(&head);
    if (needs_own_connection(transaction, &head))
        aim.protocols = ORIGIN_HTTP1;
    transaction->fetch.origin_name = next_hop_set(transaction, &aim, &request);
    fetch_set_head(transaction, &head, &request);
    if (transaction->spans != NULL)
        transaction->spans->class->name_origin(transaction, transaction->fetch.origin_name);
    fetch_send(transaction, &request);
    return true;
}

static enum step start_call(struct transaction *transaction) {
    return fetch_start_call(transaction) ? STEP_WAIT : fail_to_change(transaction);
}

static bool stale_will_do(const struct transaction *transaction, bool disconnected) {
    if (transaction->lookup.object == NULL ||
        vouching_is_over(transaction->host->vouching, transaction->net->loop->now_nanoseconds))
        return false;
    struct freshness freshness = object_freshness(transaction->lookup.object);
    int64_t most = (int64_t)(transaction->settings->cache.stale_if_error / 1000);
    return freshness_may_replace_error(&freshness, &transaction->caching.control, disconnected,
                                       most, transaction->net->loop->wall);
}

/* The stored response replaces the answer that did not come. */
static enum step use_stale(struct transaction *transaction) {
    response_drop(&transaction->response);
    outcome_set_result(&transaction->outcome, RESULT_STALE);
    lookup_tell_followers(transaction, SHARED_FETCH_FAILED);
    return STEP_ANSWER;
}

static void give_up_slot(struct transaction *transaction) {
    origin_slot_close(transaction->fetch.slot);
    transaction->fetch.slot = NULL;
    origin_host_leave(&transaction->fetch.route->place);
}

/* Asks the origin or the parent, through the slot if there is one. A tunnel that needs no parent
 * begins at TUNNEL. */
static enum step fetch_ask(struct transaction *transaction) {
    if (transaction->request.kind == REQUEST_CONNECT &&
        !route_goes_to_parent(transaction->fetch.route))
        return STEP_TUNNEL;
    return start_call(transaction);
}

/* No server of the group is asked any more: goes straight to the host that the URL names. */
static enum step go_directly(struct transaction *transaction) {
    route_go_directly(transaction->fetch.route);
    give_up_slot(transaction);
    return fetch_ask(transaction);
}

/* No server of the group is available for the request. */
static enum step without_slot(struct transaction *transaction, const char *reason) {
    if (transaction->fetch.route->may_go_directly)
        return go_directly(transaction);
    if (stale_will_do(transaction, true))
        return use_stale(transaction);
    transaction->net->counters.origin_failures++;
    transaction->fetch.origin_name = slice_from(transaction->fetch.route->group->name);
    return fail_with(transaction, 503, reason);
}

static enum step take_slot(struct transaction *transaction) {
    switch (origin_slot_take(transaction->fetch.slot)) {
    case ORIGIN_SLOT_TAKEN: return fetch_ask(transaction);
    case ORIGIN_SLOT_WAITING: return STEP_WAIT;
    case ORIGIN_SLOT_REFUSED:
        return without_slot(
            transaction,
            "all its servers are at max_connections, and queue_max requests are already waiting");
    case ORIGIN_SLOT_EXPIRED:
        return without_slot(transaction, "all its servers are at max_connections, and none became "
                                         "free within queue_timeout");
    case ORIGIN_SLOT_EMPTY:
        return without_slot(transaction, "it has no servers now: DNS names none for it, or has not "
                                         "been asked with success yet (retortctl origins)");
    case ORIGIN_SLOT_NONE: break;
    }
    return without_slot(transaction, "none of its servers could be asked");
}

static enum step fetch_join_group(struct transaction *transaction) {
    const struct route *route = transaction->fetch.route;
    const struct origin_slot_needs needs = {
        .hash = route_hash(transaction),
        .repeatable = is_repeatable(transaction),
        .only_up = route->may_go_directly,
        .any_status = route->by_parent || route->place != NULL,
        .deadline = transaction->fetch.deadline,
    };
    transaction->fetch.slot = arena_alloc(&transaction->arena, sizeof *transaction->fetch.slot);
    origin_slot_init(transaction->fetch.slot, route->group, transaction->net,
                     transaction->host->mailbox, &transaction->task, &needs);
    return take_slot(transaction);
}

static void set_deadline(struct transaction *transaction) {
    uint64_t most = transaction->settings->origin.total_timeout;
    if (transaction->fetch.deadline == 0) /* else it has begun before, to ask for a part */
        transaction->fetch.deadline = most == 0 ? TIMER_NEVER : transaction->net->loop->now + most;
}

/* Prepares and starts the call. Returns another step when there is nothing to call. */
static enum step fetch_start(struct transaction *transaction) {
    request_own(transaction);
    request_take_body(transaction);
    if (internal_is_asked(transaction)) {
        internal_answer(transaction);
        return STEP_NEXT;
    }
    transaction->fetch.route = route_find(transaction);
    if (transaction->fetch.route == NULL)
        return fail_with(transaction, 404, "no map section matches this URL");
    if (!route_stays_below_map(transaction))
        return fail_with(transaction, 400,
                         "the path has a segment that a server may take for \".\" or \"..\", so it "
                         "could leave the mapped path");
    const char *denial = route_denial(transaction);
    if (denial != NULL)
        return fail_destination_denied(transaction, denial);
    set_deadline(transaction);
    if (transaction->fetch.route->group != NULL)
        return fetch_join_group(transaction);
    return fetch_ask(transaction);
}

/* Another server may be asked if no server has acted on the request, or if the request may be
 * repeated. */
static bool may_go_elsewhere(const struct transaction *transaction) {
    const struct origin_call *call = transaction->fetch.call;
    if (transaction->fetch.slot == NULL ||
        transaction->net->loop->now >= transaction->fetch.deadline)
        return false;
    if (call->failure == ORIGIN_UNREACHABLE || call->failure == ORIGIN_TIMED_OUT)
        return call->unsent;
    bool unprocessed = call->unprocessed && !call->body_begun;
    return call->failure == ORIGIN_BROKE_OFF && !call->heard &&
           (unprocessed || is_repeatable(transaction));
}

/* False: there is no other server, and the failure stands. */
static bool go_elsewhere(struct transaction *transaction, enum step *next) {
    enum origin_slot_state state = origin_slot_take(transaction->fetch.slot);
    bool directly = transaction->fetch.route->may_go_directly;
    if (state != ORIGIN_SLOT_TAKEN && state != ORIGIN_SLOT_WAITING && !directly)
        return false;
    transaction->net->counters.origin_server_switches++;
    origin_call_close(transaction->fetch.call);
    transaction->fetch.call = NULL;
    *next = STEP_WAIT;
    if (state == ORIGIN_SLOT_TAKEN)
        *next = start_call(transaction);
    else if (state != ORIGIN_SLOT_WAITING)
        *next = go_directly(transaction);
    return true;
}

/* The body of the request has not come to its end: that of the client, or that of a service. */
static enum step no_request(struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    if (!exchange->body_failed)
        return fail_with(transaction, 502,
                         "an adaptation service stopped in the middle of the request's body, or "
                         "changed the body's length without changing Content-Length");
    transaction->net->counters.client_aborts++;
    if (exchange->body_too_large)
        return transaction->limiting->class->refuse_request(transaction);
    if (exchange->body_timed_out)
        return fail_with(transaction, 408, "the request's body did not arrive in time");
    return fail_with(transaction, 400, transaction->fetch.call->error);
}

static void fetch_trace_failure(struct transaction *transaction) {
    const struct origin_call *call = transaction->fetch.call;
    if (call->failure == ORIGIN_DENIED)
        transaction->spans->class->forget_call(transaction);
    else
        transaction->spans->class->note_failure(transaction, call->error);
}

static enum step fetch_failed(struct transaction *transaction) {
    struct origin_call *call = transaction->fetch.call;
    enum step next;
    response_drop(&transaction->response);
    if (transaction->spans != NULL)
        fetch_trace_failure(transaction);
    if (call->failure == ORIGIN_DENIED)
        return fail_destination_denied(transaction, call->error);
    if (may_go_elsewhere(transaction) && go_elsewhere(transaction, &next))
        return next;
    if (call->failure != ORIGIN_NO_REQUEST && stale_will_do(transaction, true)) {
        transaction->net->counters.origin_failures++;
        return use_stale(transaction);
    }
    if (call->failure == ORIGIN_NO_REQUEST)
        return no_request(transaction);
    transaction->net->counters.origin_failures++;
    const struct bumped_class *inside = bumped_class_of(transaction);
    if (call->reached && inside != NULL)
        inside->origin_failed(transaction);
    unsigned status = call->failure == ORIGIN_TIMED_OUT ? 504 : 502;
    return fail_with(transaction, status, arena_copy(&transaction->arena, slice_from(call->error)));
}

/* Drops the answer and asks the origin again, with a new request. */
static enum step ask_again(struct transaction *transaction) {
    response_drop(&transaction->response);
    origin_call_close(transaction->fetch.call);
    transaction->fetch.call = NULL;
    give_up_slot(transaction);
    return fetch_start(transaction);
}

/* The origin has answered 304 to our own condition. If the 304 does not belong to what is stored,
 * the stored response can't be brought up to date, and the whole response is asked for. */
static enum step revalidated(struct transaction *transaction) {
    enum shared_fetch_outcome outcome;
    if (!refresh_object(transaction, transaction->response.head, &outcome)) {
        lookup_stop_revalidating(transaction);
        return ask_again(transaction);
    }
    transaction->net->counters.cache_revalidated++;
    outcome_set_result(&transaction->outcome, RESULT_REVALIDATED);
    lookup_tell_followers(transaction, outcome);
    return STEP_ANSWER;
}

/* The rest that was asked for can't be had: asks for the whole response. */
static enum step fetch_whole(struct transaction *transaction) {
    transaction->fetch.completing = false;
    lookup_forget_part(transaction);
    return ask_again(transaction);
}

/* The parent wants credentials. Only we can have them: those of a client never go to the parent. */
static enum step parent_wants_credentials(struct transaction *transaction) {
    bool shown = transaction->fetch.route->origins->credentials != NULL;
    transaction->net->counters.origin_failures++;
    return fail_with(transaction, 502,
                     shown
                         ? "the parent proxy does not accept the credentials in its origins section"
                         : "the parent proxy demands credentials: set them in its origins section");
}

/* The parent has answered a CONNECT: the tunnel is open, or the parent says why not. */
static enum step parent_answered(struct transaction *transaction) {
    unsigned status = transaction->response.head->status;
    if (status >= 200 && status < 300)
        return STEP_TUNNEL;
    transaction->net->counters.origin_failures++;
    return fail_with(transaction, status == 504 ? 504 : 502,
                     "the parent proxy did not open the tunnel");
}

/* Counts whole seconds that have passed, not changes of the clock's second. So a response that came
 * at once is not a second old. */
static void note_times(struct transaction *transaction) {
    const struct loop *loop = transaction->net->loop;
    time_t passed = (time_t)((loop->now - transaction->fetch.asked_at) / 1000);
    response_set_times(&transaction->response, loop->wall - passed, loop->wall);
}

/* Alt-Svc would lead the client past the proxy (RFC 7838), by HTTP/3. What is stored may be for
 * intercepted connections, whoever has asked for it first. */
static void remove_alt_svc(const struct transaction *transaction, struct http_head *response) {
    const struct settings *settings = transaction->settings;
    if (settings->removes_alt_svc && transaction->exchange->listen->mode != LISTEN_REVERSE)
        http_head_remove(response, HTTP_ALT_SVC);
}

/* What follows from the answer. */
static enum step use_answer(struct transaction *transaction) {
    const struct http_head *response = transaction->response.head;
    enum step next = transaction->settings->changes_responses
                         ? transaction->settings->head_changes->response(transaction)
                         : STEP_NEXT;
    if (next != STEP_NEXT)
        return next;
    if (response->status == 304 && transaction->lookup.revalidating)
        return revalidated(transaction);
    if (response->status >= 500 && response->status <= 504 && response->status != 501 &&
        stale_will_do(transaction, false))
        return use_stale(transaction);
    /* Adapted bytes are others than those that the response to a HEAD is about. */
    if (transaction->request.head->method_id == HTTP_METHOD_HEAD && !has_respmod(transaction))
        refresh_from_head(transaction);
    if (transaction->lookup.object != NULL) {
        outcome_set_result(&transaction->outcome, RESULT_REFRESHED);
        lookup_replace(transaction);
    } else if (transaction->lookup.replaced != NULL) {
        outcome_set_result(&transaction->outcome, RESULT_REFRESHED);
    }
    return STEP_NEXT;
}

static enum step fetch_run(struct transaction *transaction) {
    struct origin_call *call = transaction->fetch.call;
    if (transaction->told != NULL)
        return invalidate_is_told(transaction) ? use_answer(transaction) : STEP_WAIT;
    if (call == NULL)
        return transaction->fetch.slot == NULL ? fetch_start(transaction) : take_slot(transaction);
    if (call->state == ORIGIN_FAILED)
        return fetch_failed(transaction);
    if (call->state != ORIGIN_ANSWERED)
        return STEP_WAIT;
    struct http_head *response = call->response;
    if (transaction->spans != NULL)
        transaction->spans->class->note_answer(transaction, response->status);
    transaction->fetch.version = slice_from(call->class->version);
    response_set_head(&transaction->response, response);
    char *bytes = arena_alloc(&transaction->arena, http_head_size(response));
    http_head_copy(response, response, bytes);
    if (response->status == 407 && route_asks_parent(transaction, transaction->fetch.route))
        return parent_wants_credentials(transaction);
    if (transaction->request.kind == REQUEST_CONNECT)
        return parent_answered(transaction);
    if (response->status == 101)
        return STEP_TUNNEL;
    http_head_remove_hop_by_hop(response);
    remove_proofs_of_proxies(response);
    http_head_remove(response, HTTP_TRANSFER_ENCODING);
    if (http_head_has(response, HTTP_ALT_SVC))
        remove_alt_svc(transaction, response);
    if (!transaction->fetch.trailers)
        http_head_remove(response, HTTP_TRAILER);
    note_times(transaction);
    response_date(transaction); /* so that a 304 renews the age of what it confirms */
    struct source *body = origin_call_body(call);
    response_set(&transaction->response, response, &body);
    if (transaction->fetch.completing && !stored_part_completes(transaction)) {
        if (response->status == 206 || response->status == 416)
            return fetch_whole(transaction);
        transaction->fetch.completing = false;
    }
    reverse_map_response(transaction); /* first: invalidation works on the clients' URLs */
    invalidate_stored(transaction);
    return transaction->told == NULL ? use_answer(transaction) : STEP_WAIT;
}

void fetch_name_origin(struct transaction *transaction, struct slice name) {
    transaction->fetch.origin_name = name;
}

const char *fetch_error(const struct transaction *transaction) {
    const struct origin_call *call = transaction->fetch.call;
    if (transaction->outcome.error != NULL)
        return transaction->outcome.error;
    return call != NULL && call->state == ORIGIN_ANSWERED && call->body_failed ? call->error : NULL;
}

static void fetch_forget_request(struct transaction *transaction) {
    if (transaction->fetch.call != NULL)
        origin_call_forget_request(transaction->fetch.call);
}

static void fetch_close_call(struct transaction *transaction, struct fetch *fetch) {
    invalidate_end(transaction);
    if (fetch->call != NULL)
        origin_call_close(fetch->call);
    origin_slot_close(fetch->slot);
    origin_host_leave(&fetch->route->place);
}

static void fetch_let_go(struct transaction *transaction) {
    fetch_forget_request(transaction);
    request_close_body(transaction);
}

/* The body of the response is read from the call. */
static void fetch_close(struct transaction *transaction) {
    response_close_body(&transaction->response);
    if (transaction->fetch.route != NULL)
        fetch_close_call(transaction, &transaction->fetch);
    request_close_body(transaction);
}

const struct step_row fetch_step = {
    .name = "FETCH",
    .step = STEP_FETCH,
    .run = fetch_run,
    .begins = true,
    .let_go = fetch_let_go,
    .end = fetch_close,
};
