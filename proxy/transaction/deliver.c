#include "transaction/transaction.h"

#include "base/assert.h"
#include "cache/conditional.h"
#include "cache/range.h"
#include "http/date.h"

#include <stdio.h>

/* DELIVER: the answer goes to the client, from a stored object, from a body that is still arriving,
 * or as an error page. */

static struct slice write_head(struct transaction *transaction, const struct http_head *head) {
    size_t length = http_head_write_response(head, NULL, 0);
    char *bytes = arena_alloc(&transaction->arena, length);
    http_head_write_response(head, bytes, length);
    return slice_make(bytes, length);
}

/* The client's copy is as good as ours: a head without a body (RFC 9110 §15.4.5). */
static void reply_not_modified(struct transaction *transaction, const struct http_head *stored) {
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    http_head_init(head);
    head->version = 11;
    head->status = 304;
    head->reason = SLICE("Not Modified");
    for (unsigned i = 0; i < stored->field_count; i++)
        if (conditional_kept_in_304(stored->fields[i].id))
            http_head_add(head, stored->fields[i].name, stored->fields[i].value);
    transaction->status = 304;
    transaction->reply.head = write_head(transaction, head);
    transaction->reply.no_content = true;
    transaction->reply.body = NULL;
}

static bool client_has(const struct transaction *transaction, unsigned status, struct slice etag,
                       time_t last_modified) {
    return status == 200 && transaction->cache_allowed &&
           conditional_present(transaction->request) &&
           conditional_not_modified(transaction->request, etag, last_modified);
}

/* What is known of a body's length by now. */
static int64_t known_length(const struct body *body, int64_t announced) {
    if (announced < 0 && body_state(body) == BODY_COMPLETE)
        return (int64_t)body_length(body);
    return announced;
}

static struct slice stored_last_modified(const struct object *object, struct http_head *scratch) {
    object_parse_head(object, scratch);
    return http_head_value(scratch, HTTP_LAST_MODIFIED);
}

/* The stored head under another status line, with a field that only this answer has. */
static void set_head(struct transaction *transaction, const char *line, struct slice field) {
    struct reply *reply = &transaction->reply;
    struct slice stored = transaction->object->head;
    const char *end = memchr(stored.base, '\n', stored.length);
    size_t first_line = (size_t)(end + 1 - stored.base);
    struct slice fields[] = {slice_make(stored.base + first_line, stored.length - first_line),
                             reply->extra};
    reply->head =
        arena_printf(&transaction->arena, "HTTP/1.1 %s\r\n%.*s", line, SLICE_PRINT(field));
    reply->extra = arena_join(&transaction->arena, fields, 2);
}

/* RFC 9110 §14.2: the part that was asked for, of a response that is stored whole. */
static void choose_range(struct transaction *transaction) {
    struct object *object = transaction->object;
    struct reply *reply = &transaction->reply;
    struct range range;
    if (!http_head_has(transaction->request, HTTP_RANGE) || object->status != 200 ||
        reply->length < 0 || transaction->ranges_removed)
        return;
    struct http_head *scratch = arena_alloc(&transaction->arena, sizeof *scratch);
    uint64_t length = (uint64_t)reply->length;
    switch (range_of_request(&range, transaction->request, object->etag,
                             stored_last_modified(object, scratch), length)) {
    case RANGE_WHOLE: return;
    case RANGE_UNSATISFIABLE:
        set_head(transaction, "416 Range Not Satisfiable",
                 arena_printf(&transaction->arena, "Content-Range: bytes */%lu\r\n",
                              (unsigned long)length));
        transaction->status = 416;
        reply->body = NULL;
        reply->length = 0;
        return;
    case RANGE_PART: break;
    }
    set_head(transaction, "206 Partial Content",
             arena_printf(&transaction->arena, "Content-Range: bytes %lu-%lu/%lu\r\n",
                          (unsigned long)range.first,
                          (unsigned long)(range.first + range.count - 1), (unsigned long)length));
    transaction->status = 206;
    reply->part = true;
    reply->first = range.first;
    reply->length = (int64_t)range.count;
}

static void reply_object(struct transaction *transaction) {
    struct object *object = transaction->object;
    struct reply *reply = &transaction->reply;
    transaction->status = object->status;
    if (client_has(transaction, object->status, object->etag, object->changed_by)) {
        struct http_head *stored = arena_alloc(&transaction->arena, sizeof *stored);
        object_parse_head(object, stored);
        reply_not_modified(transaction, stored);
        return;
    }
    reply->head = object->head;
    reply->body = object->body;
    reply->length = known_length(object->body, object->body->expected);
    reply->no_content = object->status == 204;
    choose_range(transaction);
}

/* A response that is not stored goes out as it came. */
static void reply_response(struct transaction *transaction) {
    struct http_head *response = transaction->response;
    struct reply *reply = &transaction->reply;
    time_t modified = 0;
    struct slice field = http_head_value(response, HTTP_LAST_MODIFIED);
    if (field.base != NULL)
        http_date_parse(field, &modified);
    transaction->status = response->status;
    if (client_has(transaction, response->status, http_head_value(response, HTTP_ETAG), modified)) {
        reply_not_modified(transaction, response);
        return;
    }
    http_head_remove(response, HTTP_CONTENT_LENGTH);
    reply->head = write_head(transaction, response);
    reply->body = transaction->body;
    if (transaction->request->method_id != HTTP_METHOD_HEAD)
        reply->length = known_length(transaction->body, reply->length);
    reply->no_content = response->status == 204 || response->status == 304;
}

static void prepare(struct transaction *transaction) {
    if (transaction->reply.head.base != NULL)
        return; /* an error page */
    transaction->reply.extra = transaction_cache_fields(transaction);
    if (transaction->object != NULL)
        reply_object(transaction);
    else
        reply_response(transaction);
}

enum step step_deliver(struct transaction *transaction) {
    struct exchange *exchange = transaction->exchange;
    if (!transaction->replied) {
        transaction->replied = true;
        prepare(transaction);
        if (exchange_reply(exchange, &transaction->reply))
            return STEP_LOG;
    }
    transaction_settle(transaction);
    return exchange->state == EXCHANGE_SENDING ? STEP_WAIT : STEP_LOG;
}
