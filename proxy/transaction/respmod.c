#include "transaction/patience.h"

/* RESPMOD: services that change responses before the cache stores them, so that a response is
 * adapted once and served many times. */

static bool is_wanted(struct transaction *transaction) {
    const struct adapt_set *set = transaction->adapt;
    return set->any[ICAP_RESPMOD_PRECACHE] &&
           adapt_set_has(set, ICAP_RESPMOD_PRECACHE, transaction_rules(transaction)) &&
           adapt_set_has(set, ICAP_RESPMOD_PRECACHE,
                         transaction_response_rules(transaction, transaction->response));
}

static bool can_be_adapted(const struct transaction *transaction) {
    return transaction->request->method_id != HTTP_METHOD_HEAD &&
           transaction->response->status != 304 && transaction->response->status != 206 &&
           !transaction_is_internal(transaction);
}

struct slice transaction_server_ip(struct transaction *transaction) {
    if (transaction->call == NULL || transaction->call->address.length == 0)
        return slice_make("", 0);
    char *text = arena_alloc(&transaction->arena, ADDRESS_TEXT);
    return slice_make(text, address_format_ip(&transaction->call->address, text));
}

/* All that might have been asked: a look-up does not know yet what the response is. */
static void note_services(struct transaction *transaction) {
    struct icap_service *services[ADAPT_CHAIN_MAX];
    unsigned count = adapt_set_choose(transaction->adapt, ICAP_RESPMOD_PRECACHE,
                                      transaction_rules(transaction), services);
    transaction->seen = arena_alloc(&transaction->arena, sizeof *transaction->seen);
    adapt_mark_begin(transaction->seen, services, count);
}

/* The shortest that a service asks for. */
static uint64_t patience_of(struct icap_service *const *chosen, unsigned count) {
    uint64_t least = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t after = chosen[i]->settings->patience_after;
        if (after > 0 && (least == 0 || after < least))
            least = after;
    }
    return least;
}

static void start(struct transaction *transaction) {
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    unsigned count =
        adapt_set_choose(transaction->adapt, ICAP_RESPMOD_PRECACHE,
                         transaction_response_rules(transaction, transaction->response), chosen);
    note_services(transaction);
    struct http_head *request = arena_alloc(&transaction->arena, sizeof *request);
    http_head_assign(request, transaction->request);
    struct slice credentials = http_head_value(request, HTTP_PROXY_AUTHORIZATION);
    http_head_remove_hop_by_hop(request);
    http_head_remove(request, HTTP_PROXY_AUTHORIZATION);
    transaction->challenge = http_head_value(transaction->response, HTTP_PROXY_AUTHENTICATE);
    http_head_remove(transaction->response, HTTP_PROXY_AUTHENTICATE);
    request->target = transaction->url_text;
    transaction->message = (struct adapt_message){
        .request = request,
        .response = transaction->response,
        .body = transaction->response_body,
        .path = url_path(&transaction->url),
        .client_ip = transaction_client_ip(transaction),
        .client_port = address_port(&transaction->exchange->client->address),
        .server_ip = transaction_server_ip(transaction),
        .proxy_authorization = credentials,
        .proxy_authenticate = transaction->challenge,
        .transaction_id = slice_from(transaction_id(transaction)),
    };
    transaction->expected_length =
        transaction->response_body != NULL ? transaction->response_body->length : 0;
    transaction->response_body = NULL;
    transaction->respmod = arena_alloc(&transaction->arena, sizeof *transaction->respmod);
    adapt_chain_start(transaction->respmod, transaction->adapt, chosen, count,
                      &transaction->message, &transaction->arena, transaction->net,
                      &transaction->task);
    patience_begin(transaction, patience_of(chosen, count));
}

/* A HEAD tells of what a GET would bring, and of that only the service knows the length. */
static void forget_length(struct transaction *transaction) {
    if (transaction->request->method_id == HTTP_METHOD_HEAD && is_wanted(transaction))
        http_head_remove(transaction->response, HTTP_CONTENT_LENGTH);
}

enum step step_respmod(struct transaction *transaction) {
    if (transaction->respmod == NULL) {
        forget_length(transaction);
        if (!can_be_adapted(transaction) || !is_wanted(transaction))
            return STEP_STORE;
        start(transaction);
    }
    switch (transaction->respmod->state) {
    case ADAPT_RUNNING:
        return patience_is_over(transaction) ? patience_reply(transaction) : STEP_WAIT;
    case ADAPT_DONE: break;
    default: return transaction_fail(transaction, 502, transaction->respmod->error);
    }
    adapt_mark_take(transaction->seen, transaction->respmod);
    transaction->response = transaction->message.response;
    transaction->response_body = transaction->message.body;
    transaction->message.body = NULL;
    if (transaction->challenge.length > 0) /* it is for the client, whatever a service made of it */
        http_head_set(transaction->response, HTTP_PROXY_AUTHENTICATE, transaction->challenge);
    return STEP_STORE;
}
