#include "transaction/transaction.h"

#include "base/assert.h"

/* RESPMOD_POSTCACHE: services that change responses behind the cache: each client's copy on its
 * way out, wherever it comes from. What is stored stays as it is.
 *
 * What they have changed is a thing of its own: it has neither the stored response's validators nor
 * its ranges. What they leave alone goes out like any stored response. */

bool transaction_may_adapt_late(struct transaction *transaction) {
    const struct adapt_set *set = transaction->adapt;
    return set->any[ICAP_RESPMOD_POSTCACHE] && !transaction->exchange->background &&
           !transaction->is_connect && !transaction_is_internal(transaction) &&
           adapt_set_has(set, ICAP_RESPMOD_POSTCACHE, transaction_rules(transaction));
}

enum step transaction_answer(struct transaction *transaction) {
    bool wanted = transaction->adapt->any[ICAP_RESPMOD_POSTCACHE] &&
                  transaction->result != RESULT_SERVICE && transaction_may_adapt_late(transaction);
    return wanted ? STEP_RESPMOD_POSTCACHE : STEP_DELIVER;
}

void late_end(struct late *late) {
    pump_stop(&late->pump);
    source_close(&late->message.body);
    adapt_chain_close(&late->chain);
    body_release(&late->body);
}

static struct body *body_of(const struct transaction *transaction) {
    return transaction->object != NULL ? transaction->object->body : transaction->body;
}

/* As an origin would send it. */
static struct http_head *copy_head(struct transaction *transaction) {
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    if (transaction->object == NULL) {
        http_head_assign(head, transaction->response);
        return head;
    }
    object_parse_head(transaction->object, head);
    const struct body *body = transaction->object->body;
    int64_t length = body->expected;
    if (body_state(body) == BODY_COMPLETE)
        length = (int64_t)body_length(body);
    if (length >= 0 && head->status != 204)
        http_head_set(head, HTTP_CONTENT_LENGTH,
                      arena_printf(&transaction->arena, "%ld", (long)length));
    return head;
}

static struct slice opaque_tag(struct slice etag) {
    return slice_starts_with(etag, SLICE("W/")) ? slice_make(etag.base + 2, etag.length - 2) : etag;
}

/* These tell of the bytes that were stored. */
static void forget_bytes(struct http_head *head, struct slice old_etag) {
    static const enum http_name fields[] = {HTTP_ACCEPT_RANGES,  HTTP_CONTENT_DIGEST,
                                            HTTP_CONTENT_LENGTH, HTTP_CONTENT_MD5,
                                            HTTP_DIGEST,         HTTP_REPR_DIGEST};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        http_head_remove(head, fields[i]);
    if (slice_equal(opaque_tag(http_head_value(head, HTTP_ETAG)), opaque_tag(old_etag)))
        http_head_remove(head, HTTP_ETAG);
}

static void start(struct transaction *transaction, struct http_head *response, unsigned count,
                  struct icap_service *const *chosen) {
    struct late *late = transaction->late;
    struct http_head *request = arena_alloc(&transaction->arena, sizeof *request);
    http_head_assign(request, transaction->request);
    struct slice credentials = http_head_value(request, HTTP_PROXY_AUTHORIZATION);
    http_head_remove_hop_by_hop(request);
    http_head_remove(request, HTTP_PROXY_AUTHORIZATION);
    request->target = transaction->url_text;
    transaction->challenge = http_head_value(response, HTTP_PROXY_AUTHENTICATE);
    http_head_remove(response, HTTP_PROXY_AUTHENTICATE);
    late->message = (struct adapt_message){
        .request = request,
        .response = response,
        .path = url_path(&transaction->url),
        .client_ip = transaction_client_ip(transaction),
        .client_port = address_port(&transaction->exchange->client->address),
        .server_ip = transaction_server_ip(transaction),
        .proxy_authorization = credentials,
        .proxy_authenticate = transaction->challenge,
        .transaction_id = slice_from(transaction_id(transaction)),
    };
    if (response->status != 204)
        late->message.body = body_source_open(&late->source, body_of(transaction),
                                              transaction->net->loop, transaction->host->mailbox);
    adapt_chain_start(&late->chain, transaction->adapt, chosen, count, &late->message,
                      &transaction->arena, transaction->net, &transaction->task);
}

/* A HEAD tells of what a GET would bring, of which only the services know these things. */
static enum step answer_head(struct transaction *transaction, struct http_head *response) {
    forget_bytes(response, http_head_value(response, HTTP_ETAG));
    transaction->late->changed = true;
    transaction->late->head = response;
    transaction->late->body = body_reference(body_of(transaction));
    return STEP_DELIVER;
}

/* Another step where no service is to see it. */
static enum step begin(struct transaction *transaction) {
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    struct http_head *response = copy_head(transaction);
    const uint64_t *rules = transaction_response_rules(transaction, response);
    unsigned count = adapt_set_choose(transaction->adapt, ICAP_RESPMOD_POSTCACHE, rules, chosen);
    if (count == 0 || response->status == 304 || response->status == 206)
        return STEP_DELIVER;
    transaction_own_request(transaction);
    transaction->late = arena_zalloc(&transaction->arena, sizeof *transaction->late);
    if (transaction->request->method_id == HTTP_METHOD_HEAD)
        return answer_head(transaction, response);
    start(transaction, response, count, chosen);
    return STEP_WAIT;
}

static void begin_pump(struct transaction *transaction, int64_t length) {
    struct late *late = transaction->late;
    if (late->message.body == NULL) {
        late->body = body_of_bytes(slice_make("", 0));
        return;
    }
    late->body = body_new(transaction->net, BODY_PASSING, length);
    pump_start(&late->pump, transaction->net->loop, &late->message.body, late->body, 0,
               &transaction->task);
}

/* What is not stored has passed through the services; what is stored can be sent from there. */
static enum step unchanged(struct transaction *transaction) {
    struct late *late = transaction->late;
    if (transaction->object != NULL) {
        source_close(&late->message.body);
        adapt_chain_close(&late->chain);
        return STEP_DELIVER;
    }
    begin_pump(transaction, late->message.body != NULL ? late->message.body->length : 0);
    body_release(&transaction->body);
    transaction->body = body_reference(late->body);
    return STEP_DELIVER;
}

static enum step changed(struct transaction *transaction) {
    struct late *late = transaction->late;
    struct slice etag = transaction->object != NULL
                            ? object_etag(transaction->object)
                            : http_head_value(transaction->response, HTTP_ETAG);
    late->changed = true;
    late->head = late->message.response;
    forget_bytes(late->head, etag);
    if (transaction->challenge.length > 0) /* it is for the client, whatever a service made of it */
        http_head_set(late->head, HTTP_PROXY_AUTHENTICATE, transaction->challenge);
    begin_pump(transaction, -1);
    return STEP_DELIVER;
}

enum step step_respmod_postcache(struct transaction *transaction) {
    transaction_settle(transaction);
    if (transaction->late == NULL)
        return begin(transaction);
    switch (transaction->late->chain.state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: break;
    default: return transaction_fail(transaction, 502, transaction->late->chain.error);
    }
    return transaction->late->chain.modified ? changed(transaction) : unchanged(transaction);
}
