#include "transaction/transaction.h"

#include "base/assert.h"

/* REQMOD: services that change requests, or answer them, before the cache is asked. */

/* A service must see the whole URL, whatever form the client used. */
static void prepare_head(struct transaction *transaction) {
    http_head_remove_hop_by_hop(transaction->request);
    /* Credentials for this proxy are no service's business (RFC 3507 §4.4.2). */
    http_head_remove(transaction->request, HTTP_PROXY_AUTHORIZATION);
    if (!transaction->is_connect)
        transaction->request->target = transaction->url_text;
}

static void start(struct transaction *transaction) {
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    unsigned count = adapt_set_choose(transaction->adapt, ICAP_REQMOD_PRECACHE,
                                      transaction_request_rules(transaction), chosen);
    transaction_own_request(transaction);
    transaction_take_body(transaction);
    struct slice credentials = http_head_value(transaction->request, HTTP_PROXY_AUTHORIZATION);
    prepare_head(transaction);
    transaction->message = (struct adapt_message){
        .proxy_authorization = credentials,
        .client_port = address_port(&transaction->exchange->client->address),
        .request = transaction->request,
        .body = transaction->request_body,
        .path = url_path(&transaction->url),
        .client_ip = transaction_client_ip(transaction),
        .transaction_id = slice_from(transaction_id(transaction)),
    };
    transaction->request_body = NULL;
    transaction->reqmod = arena_alloc(&transaction->arena, sizeof *transaction->reqmod);
    adapt_chain_start(transaction->reqmod, transaction->adapt, chosen, count, &transaction->message,
                      &transaction->arena, transaction->net, &transaction->task);
}

bool transaction_wants_reqmod(struct transaction *transaction) {
    /* A request repeated in the background has been adapted before. */
    return transaction->adapt->any_reqmod && !transaction->exchange->background &&
           adapt_set_has(transaction->adapt, ICAP_REQMOD_PRECACHE,
                         transaction_rules(transaction)) &&
           adapt_set_has(transaction->adapt, ICAP_REQMOD_PRECACHE,
                         transaction_request_rules(transaction));
}

static bool parse_target(const struct http_head *request, struct url *url) {
    struct slice target = request->target;
    if (target.length > 0 && target.base[0] == '/')
        return url_parse_authority(url, http_head_value(request, HTTP_HOST), 80) &&
               url_set_target(url, target);
    return url_parse(url, target);
}

/* The adapted request may be for another place. */
static enum step adopt_request(struct transaction *transaction) {
    struct http_head *request = transaction->request;
    struct url url;
    transaction->request_body = transaction->message.body;
    transaction->message.body = NULL;
    if (!transaction->reqmod->modified)
        return STEP_LOOKUP;
    transaction->rules = NULL;
    request->method_id = http_method_lookup(request->method);
    if (transaction->is_connect)
        return STEP_LOOKUP;
    if (!parse_target(request, &url) || !transaction_set_url(transaction, &url) ||
        !slice_equal(transaction->url.scheme, SLICE("http")))
        return transaction_fail(transaction, 502,
                                "an adaptation service made the URL into one that can't be used");
    return STEP_LOOKUP;
}

static enum step adopt_response(struct transaction *transaction) {
    transaction->response = transaction->message.response;
    transaction->response_body = transaction->message.body;
    transaction->message.body = NULL;
    transaction->result = RESULT_SERVICE;
    transaction->response_time = transaction->net->loop->wall;
    if (transaction->response == NULL || transaction->response->status < 200)
        return transaction_fail(transaction, 502,
                                "an adaptation service answered with something unusable");
    /* To the client any 2xx means that the tunnel is open, whatever page comes with it. */
    if (transaction->is_connect && transaction->response->status < 300)
        return transaction_fail(transaction, 403, "an adaptation service answered for the origin");
    return STEP_STORE;
}

static enum step failed(struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    if (exchange->body_timed_out)
        return transaction_fail(transaction, 408, "the request's body did not come in time");
    if (exchange->body_failed)
        return transaction_fail(transaction, 400, "the request's body broke off");
    return transaction_fail(transaction, 502, transaction->reqmod->error);
}

enum step step_reqmod(struct transaction *transaction) {
    if (transaction->reqmod == NULL)
        start(transaction);
    switch (transaction->reqmod->state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: return adopt_request(transaction);
    case ADAPT_SATISFIED: return adopt_response(transaction);
    default: return failed(transaction);
    }
}
