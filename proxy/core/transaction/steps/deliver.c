#include "transaction/steps/deliver.h"

#include "base/assert.h"
#include "cache/conditional.h"
#include "http/date.h"
#include "transaction/access.h"
#include "transaction/cache_status.h"
#include "transaction/fail.h"
#include "transaction/forwarding.h"
#include "transaction/head_changes.h"
#include "transaction/https.h"
#include "transaction/ranges.h"
#include "transaction/transaction.h"

/* DELIVER: sends the answer to the client, from a stored object, from a body that is still
 * arriving, or as an error page. */

void delivery_set_head(struct transaction *transaction, const struct http_head *head) {
    transaction->delivery.reply.status = head->status;
    outcome_set_status(&transaction->outcome, head->status);
    transaction->delivery.reply.head = head;
    transaction->delivery.reply.arena = &transaction->arena;
}

void delivery_set_page(struct transaction *transaction, enum cache_result result,
                       const struct http_head *head, struct slice content) {
    body_release(&transaction->delivery.page);
    transaction->delivery.page = body_of_bytes(content);
    outcome_set_page(&transaction->outcome, result, step_name(transaction->step));
    transaction->delivery.reply = (struct reply){
        .body = transaction->delivery.page,
        .length = (int64_t)content.length,
    };
    delivery_set_head(transaction, head);
}

struct http_head *delivery_make_typed_page(struct transaction *transaction,
                                           enum cache_result result, unsigned status,
                                           struct slice type, struct slice text) {
    struct arena *arena = &transaction->arena;
    struct http_head *head = arena_alloc(arena, sizeof *head);
    http_head_init(head);
    head->status = status;
    head->reason = slice_from(http_reason(status));
    http_head_add(head, SLICE("Content-Type"), type);
    http_head_add(head, SLICE("Cache-Control"), SLICE("no-store"));
    forwarding_add_via(transaction, head);
    delivery_set_page(transaction, result, head, text);
    return head;
}

struct http_head *delivery_make_page(struct transaction *transaction, enum cache_result result,
                                     unsigned status, struct slice text) {
    return delivery_make_typed_page(transaction, result, status, SLICE("text/html; charset=utf-8"),
                                    text);
}

void delivery_redirect(struct transaction *transaction, unsigned status, struct slice to) {
    struct http_head *head = delivery_make_page(transaction, RESULT_DENIED, status,
                                                SLICE("<!DOCTYPE html>\n<title>Elsewhere</title>\n"
                                                      "<p>The answer is elsewhere.</p>\n"));
    http_head_add(head, SLICE("Location"), to);
}

/* The client's copy is valid, so the answer is a head without a body (RFC 9110 §15.4.5). */
static void reply_not_modified(struct transaction *transaction, const struct http_head *stored) {
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    http_head_init(head);
    head->status = 304;
    head->reason = SLICE("Not Modified");
    for (unsigned i = 0; i < stored->field_count; i++)
        if (conditional_kept_in_304(stored->fields[i].id))
            http_head_add(head, stored->fields[i].name, stored->fields[i].value);
    delivery_set_head(transaction, head);
    transaction->delivery.reply.body = NULL;
}

static bool may_have(const struct transaction *transaction, unsigned status) {
    return (status == 200 || status == 206) && transaction->caching.allowed &&
           conditional_present(transaction->request.head);
}

static bool client_has(const struct transaction *transaction, unsigned status, struct slice etag,
                       time_t last_modified) {
    return may_have(transaction, status) &&
           conditional_not_modified(transaction->request.head, etag, last_modified);
}

/* Returns the length of a body as far as it is known. */
static int64_t known_length(const struct body *body, int64_t announced) {
    if (announced < 0 && body_state(body) == BODY_COMPLETE)
        return (int64_t)body_length(body);
    return announced;
}

static void reply_object(struct transaction *transaction) {
    struct object *object = transaction_shown(transaction);
    struct reply *reply = &transaction->delivery.reply;
    if (client_has(transaction, object->status, object_etag(object), object->changed_by)) {
        struct http_head *stored = arena_alloc(&transaction->arena, sizeof *stored);
        object_parse_head(object, stored);
        reply_not_modified(transaction, stored);
        return;
    }
    reply->status = object->status;
    outcome_set_status(&transaction->outcome, object->status);
    reply->stored = object_head(object);
    reply->body = object->body;
    reply->length = known_length(object->body, object->body->expected);
    if (reply->length >= 0 && http_head_has(transaction->request.head, HTTP_RANGE))
        ranges_choose(transaction, object, reply);
}

/* A response that is not stored is sent as it arrived. */
static void reply_response(struct transaction *transaction) {
    struct http_head *response = transaction->response.head;
    struct reply *reply = &transaction->delivery.reply;
    time_t modified = 0;
    struct slice field = http_head_value(response, HTTP_LAST_MODIFIED);
    if (field.base != NULL && may_have(transaction, response->status))
        http_date_parse(field, &modified);
    if (client_has(transaction, response->status, http_head_value(response, HTTP_ETAG), modified)) {
        reply_not_modified(transaction, response);
        return;
    }
    http_head_remove(response, HTTP_CONTENT_LENGTH);
    delivery_set_head(transaction, response);
    reply->body = transaction->adapting != NULL && transaction->adapting->body != NULL
                      ? transaction->adapting->body
                      : transaction->storing.body;
    reply->length = transaction->storing.announced_length;
    if (transaction->request.head->method_id != HTTP_METHOD_HEAD)
        reply->length = known_length(reply->body, reply->length);
}

/* A result of respmod_postcache services. It is complete, and its only validator is its ETag. */
static void reply_adapted(struct transaction *transaction) {
    const struct adapting *adapted = transaction->adapting;
    struct reply *reply = &transaction->delivery.reply;
    if (client_has(transaction, adapted->head->status, http_head_value(adapted->head, HTTP_ETAG),
                   0)) {
        reply_not_modified(transaction, adapted->head);
        return;
    }
    http_head_remove(adapted->head, HTTP_CONTENT_LENGTH);
    delivery_set_head(transaction, adapted->head);
    reply->body = adapted->body;
    reply->length = -1;
    if (transaction->request.head->method_id != HTTP_METHOD_HEAD)
        reply->length = known_length(adapted->body, adapted->body->expected);
}

/* Trailers of this response follow its body, which is chunked for that. Stored responses have no
 * trailers. */
static void add_trailers(struct transaction *transaction) {
    struct reply *reply = &transaction->delivery.reply;
    const struct origin_call *call = transaction->fetch.call;
    if (!transaction->fetch.trailers || call == NULL || !call->may_have_trailers ||
        reply->body == NULL || reply->body != transaction->storing.body ||
        reply_has_no_content(reply) || reply->part || reply->part_count > 0)
        return;
    reply->trailers = &call->trailers;
    reply->length = -1;
}

static struct http_head *own_head_of_reply(struct transaction *transaction) {
    const struct reply *reply = &transaction->delivery.reply;
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    if (reply->head != NULL)
        http_head_assign(head, reply->head);
    else
        object_parse_head(transaction_shown(transaction), head);
    return head;
}

/* The stored response has no cookies. The client whose request fetched it gets them. */
static void give_cookies(struct transaction *transaction) {
    struct http_head *head = own_head_of_reply(transaction);
    const struct http_head *response = transaction->response.head;
    for (unsigned i = 0; i < response->field_count; i++)
        if (response->fields[i].id == HTTP_SET_COOKIE || response->fields[i].id == HTTP_SET_COOKIE2)
            http_head_add(head, response->fields[i].name, response->fields[i].value);
    delivery_set_head(transaction, head);
}

static void choose_reply(struct transaction *transaction) {
    if (transaction->adapting != NULL && transaction->adapting->head != NULL) {
        reply_adapted(transaction);
        return;
    }
    if (transaction_object(transaction) != NULL)
        reply_object(transaction);
    else
        reply_response(transaction);
    if (transaction->fetch.trailers)
        add_trailers(transaction);
}

static void deliver_prepare(struct transaction *transaction) {
    if (transaction->delivery.reply.status != 0)
        return; /* an error page */
    transaction->delivery.reply.extra = cache_status_fields(transaction);
    choose_reply(transaction);
    if (transaction_object(transaction) != NULL && caching_gives_cookies(transaction))
        give_cookies(transaction);
}

static enum step deliver_run(struct transaction *transaction) {
    struct exchange *exchange = transaction->exchange;
    if (!transaction->delivery.replied) {
        transaction->delivery.replied = true;
        deliver_prepare(transaction);
        if (transaction->limiting != NULL)
            transaction->limiting->class->refuse_reply(transaction);
        if (transaction->settings->changes_replies)
            transaction->settings->head_changes->reply(transaction);
        if (exchange->ends->tls != NULL)
            https_secure_reply(transaction);
        /* The client may want to know that this is the proxy it has shown its ticket to. */
        if (transaction->access != NULL && transaction->access->answer.length > 0)
            delivery_add_lines(transaction,
                               access_answer_line(transaction, transaction->delivery.reply.status));
        if (exchange_reply(exchange, &transaction->delivery.reply))
            return STEP_LOG;
    }
    storing_settle(transaction);
    return exchange->state == EXCHANGE_SENDING ? STEP_WAIT : STEP_LOG;
}

void delivery_add_lines(struct transaction *transaction, struct slice lines) {
    struct reply *reply = &transaction->delivery.reply;
    if (lines.length > 0)
        reply->extra = arena_concat(&transaction->arena, lines, reply->extra);
}

void delivery_close_connection(struct transaction *transaction) {
    transaction->delivery.reply.close = true;
}

void delivery_release(struct transaction *transaction) {
    body_release(&transaction->delivery.page);
}

const struct step_row deliver_step = {.name = "DELIVER", .step = STEP_DELIVER, .run = deliver_run};
