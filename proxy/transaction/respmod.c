#include "transaction/transaction.h"

/* RESPMOD: services that change responses before the cache stores them, so that a response is
 * adapted once and served many times. */

static bool can_be_adapted(const struct transaction *transaction) {
    return transaction->adapt->any_respmod && transaction->request->method_id != HTTP_METHOD_HEAD &&
           transaction->response->status != 304 && transaction->response->status != 206 &&
           !transaction_is_internal(transaction);
}

static bool start(struct transaction *transaction) {
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    struct class_subject subject;
    transaction_subject(transaction, &subject);
    unsigned count = adapt_set_choose(transaction->adapt, ICAP_RESPMOD_PRECACHE, &subject, chosen);
    if (count == 0)
        return false;
    struct http_head *request = arena_alloc(&transaction->arena, sizeof *request);
    memcpy(request, transaction->request, sizeof *request);
    http_head_remove_hop_by_hop(request);
    http_head_remove(request, HTTP_PROXY_AUTHORIZATION);
    request->target = transaction->url_text;
    transaction->message = (struct adapt_message){
        .request = request,
        .response = transaction->response,
        .body = transaction->response_body,
        .path = url_path(&transaction->url),
        .client_ip = transaction_client_ip(transaction),
        .transaction_id = slice_from(transaction_id(transaction)),
    };
    transaction->response_body = NULL;
    transaction->respmod = arena_alloc(&transaction->arena, sizeof *transaction->respmod);
    adapt_chain_start(transaction->respmod, chosen, count, &transaction->message,
                      &transaction->arena, transaction->net, &transaction->task);
    return true;
}

/* A HEAD tells of what a GET would bring, and of that only the service knows the length. */
static void forget_length(struct transaction *transaction) {
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    struct class_subject subject;
    if (!transaction->adapt->any_respmod || transaction->request->method_id != HTTP_METHOD_HEAD)
        return;
    transaction_subject(transaction, &subject);
    if (adapt_set_choose(transaction->adapt, ICAP_RESPMOD_PRECACHE, &subject, chosen) > 0)
        http_head_remove(transaction->response, HTTP_CONTENT_LENGTH);
}

enum step step_respmod(struct transaction *transaction) {
    if (transaction->respmod == NULL) {
        forget_length(transaction);
        if (!can_be_adapted(transaction) || !start(transaction))
            return STEP_STORE;
    }
    switch (transaction->respmod->state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: break;
    default: return transaction_fail(transaction, 502, transaction->respmod->error);
    }
    transaction->response = transaction->message.response;
    transaction->response_body = transaction->message.body;
    transaction->message.body = NULL;
    return STEP_STORE;
}
