#include "transaction/transaction.h"

#include "base/assert.h"

/* REQMOD: services that change requests, or answer them, before the cache is asked; and
 * REQMOD_POSTCACHE: those behind it, which see only what goes to the origin. What these make of a
 * request is the origin's: what comes back is stored as the answer to the client's request. */

static const char unusable_url[] = "an adaptation service made the URL into one that can't be used";

static void reqmod_start(struct transaction *transaction, enum icap_point point,
                         struct adapt_chain *chain) {
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    unsigned count =
        adapt_set_choose(transaction->adapt, point, transaction_request_rules(transaction), chosen);
    transaction_own_request(transaction);
    transaction_take_body(transaction);
    struct http_head *request = transaction->request;
    if (point == ICAP_REQMOD_POSTCACHE) {
        request = &transaction->outgoing->head;
        http_head_assign(request, transaction->request);
    }
    transaction_begin_message(transaction, &transaction->message, request, NULL);
    transaction->message.body = transaction->request_body;
    transaction->request_body = NULL;
    adapt_chain_start(chain, transaction->adapt, chosen, count, &transaction->message,
                      &transaction->arena, transaction->net, &transaction->task);
}

static bool is_for(struct transaction *transaction, enum icap_point point) {
    const struct adapt_set *set = transaction->adapt;
    return adapt_set_has(set, point, transaction_rules(transaction)) &&
           adapt_set_has(set, point, transaction_request_rules(transaction));
}

bool transaction_wants_reqmod(struct transaction *transaction) {
    /* A request repeated in the background has been adapted before. */
    return transaction->adapt->any[ICAP_REQMOD_PRECACHE] && !transaction->exchange->background &&
           is_for(transaction, ICAP_REQMOD_PRECACHE);
}

enum step transaction_ask_origin(struct transaction *transaction) {
    bool wanted = transaction->adapt->any[ICAP_REQMOD_POSTCACHE] &&
                  !transaction_is_internal(transaction) &&
                  is_for(transaction, ICAP_REQMOD_POSTCACHE);
    return wanted ? STEP_REQMOD_POSTCACHE : STEP_FETCH;
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
    if (transaction->is_upgrade && request->method_id != HTTP_METHOD_GET)
        return transaction_fail(transaction, 502,
                                "an adaptation service changed the method of a request for an "
                                "upgrade");
    if (!parse_target(request, &url) || !transaction_set_url(transaction, &url) ||
        !slice_equal(transaction->url.scheme, SLICE("http")))
        return transaction_fail(transaction, 502, unusable_url);
    transaction_show_host(transaction, http_head_value(request, HTTP_HOST));
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

static enum step reqmod_failed(struct transaction *transaction, const struct adapt_chain *chain) {
    const struct exchange *exchange = transaction->exchange;
    if (exchange->body_timed_out)
        return transaction_fail(transaction, 408, "the request's body did not come in time");
    if (exchange->body_failed)
        return transaction_fail(transaction, 400, "the request's body broke off");
    return transaction_fail(transaction, 502, chain->error);
}

enum step step_reqmod(struct transaction *transaction) {
    if (transaction->reqmod == NULL) {
        transaction->reqmod = arena_alloc(&transaction->arena, sizeof *transaction->reqmod);
        reqmod_start(transaction, ICAP_REQMOD_PRECACHE, transaction->reqmod);
    }
    switch (transaction->reqmod->state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: return adopt_request(transaction);
    case ADAPT_SATISFIED: return adopt_response(transaction);
    default: return reqmod_failed(transaction, transaction->reqmod);
    }
}

/* The request for the origin may be for another place. */
static enum step adopt_outgoing(struct transaction *transaction) {
    struct outgoing *outgoing = transaction->outgoing;
    struct http_head *request = &outgoing->head;
    struct slice text;
    struct url url;
    transaction->request_body = transaction->message.body;
    transaction->message.body = NULL;
    outgoing->url = transaction->url;
    outgoing->authority = transaction->authority;
    if (!outgoing->chain.modified)
        return STEP_FETCH;
    request->method_id = http_method_lookup(request->method);
    if (transaction->is_connect)
        return STEP_FETCH;
    if (!parse_target(request, &url) ||
        !transaction_write_url(transaction, &url, &outgoing->url, &text, &outgoing->authority) ||
        !slice_equal(outgoing->url.scheme, SLICE("http")))
        return transaction_fail(transaction, 502, unusable_url);
    if (!slice_equal(request->method, transaction->request->method))
        return transaction_fail(transaction, 502,
                                "an adaptation service behind the cache changed the method");
    return STEP_FETCH;
}

/* Nothing that is stored has a part in the answer. */
static enum step adopt_late_response(struct transaction *transaction) {
    object_release(&transaction->object);
    object_release(&transaction->part);
    transaction->revalidating = false;
    return adopt_response(transaction);
}

enum step step_reqmod_postcache(struct transaction *transaction) {
    if (transaction->outgoing == NULL) {
        transaction->outgoing = arena_alloc(&transaction->arena, sizeof *transaction->outgoing);
        reqmod_start(transaction, ICAP_REQMOD_POSTCACHE, &transaction->outgoing->chain);
    }
    switch (transaction->outgoing->chain.state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: return adopt_outgoing(transaction);
    case ADAPT_SATISFIED: return adopt_late_response(transaction);
    default: return reqmod_failed(transaction, &transaction->outgoing->chain);
    }
}
