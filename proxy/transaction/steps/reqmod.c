#include "transaction/steps/reqmod.h"

#include "base/assert.h"
#include "origin/scheme.h"
#include "transaction/fail.h"
#include "transaction/internal.h"
#include "transaction/message.h"
#include "transaction/request_rules.h"
#include "transaction/steps/reqmod_postcache.h"
#include "transaction/transaction.h"

/* REQMOD: services that change requests, or answer them, before the cache is asked; and
 * REQMOD_POSTCACHE: those behind it, which see only what goes to the origin. What these make of a
 * request is the origin's: what comes back is stored as the answer to the client's request. */

static const char unusable_url[] =
    "an adaptation service changed the URL to one that can't be used";

static void reqmod_start(struct transaction *transaction, enum adapt_point point,
                         struct adapt_chain *chain) {
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    unsigned count = adapt_set_choose(transaction->adapt, point,
                                      request_rules_without_type(transaction), chosen);
    request_own(transaction);
    request_take_body(transaction);
    struct http_head *request = transaction->request.head;
    if (point == ADAPT_REQMOD_POSTCACHE) {
        request = &transaction->reqmod_postcache->head;
        http_head_assign(request, transaction->request.head);
    }
    message_begin(transaction, &transaction->message, request, NULL);
    transaction->message.body = transaction->request.body;
    transaction->request.body = NULL;
    adapt_chain_start(chain, transaction->adapt, chosen, count, &transaction->message,
                      &transaction->arena, transaction->net, &transaction->task);
}

static bool is_for(struct transaction *transaction, enum adapt_point point) {
    const struct adapt_set *set = transaction->adapt;
    return adapt_set_has(set, point, request_rules(transaction)) &&
           adapt_set_has(set, point, request_rules_without_type(transaction));
}

bool reqmod_is_wanted(struct transaction *transaction) {
    /* A request repeated in the background has been adapted before. */
    return transaction->adapt->any[ADAPT_REQMOD_PRECACHE] && !transaction->exchange->background &&
           is_for(transaction, ADAPT_REQMOD_PRECACHE);
}

enum step reqmod_postcache_or_fetch(struct transaction *transaction) {
    bool wanted = transaction->adapt->any[ADAPT_REQMOD_POSTCACHE] &&
                  !internal_is_asked(transaction) && is_for(transaction, ADAPT_REQMOD_POSTCACHE);
    return wanted ? STEP_REQMOD_POSTCACHE : STEP_FETCH;
}

/* What a service made of the target; a path is of the scheme that the request had. */
static bool parse_target(const struct transaction *transaction, const struct http_head *request,
                         struct url *url) {
    const struct url_scheme *scheme = url_scheme_find(transaction->request.url.scheme);
    struct slice target = request->target;
    if (target.length > 0 && target.base[0] == '/')
        return url_parse_authority(url, http_head_value(request, HTTP_HOST), scheme->port) &&
               url_set_target(url, scheme, target);
    return url_parse(url, target);
}

/* The adapted request may be for another place. */
static enum step adopt_request(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    struct url url;
    transaction->request.body = transaction->message.body;
    transaction->message.body = NULL;
    if (!transaction->reqmod->modified)
        return STEP_LOOKUP;
    transaction->request.rules = NULL;
    request->method_id = http_method_lookup(request->method);
    if (transaction->request.is_connect)
        return STEP_LOOKUP;
    if (transaction->request.is_upgrade && request->method_id != HTTP_METHOD_GET)
        return fail_with(transaction, 502,
                         "an adaptation service changed the method of an upgrade request");
    if (!parse_target(transaction, request, &url) || !request_set_url(transaction, &url) ||
        !origin_can_fetch(transaction->request.url.scheme))
        return fail_with(transaction, 502, unusable_url);
    request_show_host(transaction, http_head_value(request, HTTP_HOST));
    return STEP_LOOKUP;
}

static enum step adopt_response(struct transaction *transaction) {
    transaction->response.head = transaction->message.response;
    transaction->response.body = transaction->message.body;
    transaction->message.body = NULL;
    transaction->outcome.result = RESULT_SERVICE;
    transaction->response.response_time = transaction->net->loop->wall;
    if (transaction->response.head == NULL || transaction->response.head->status < 200)
        return fail_with(transaction, 502,
                         "an adaptation service sent an answer that can't be used");
    /* To the client any 2xx means that the tunnel is open, whatever page comes with it. */
    if (transaction->request.is_connect && transaction->response.head->status < 300)
        return fail_with(transaction, 403, "an adaptation service answered instead of the origin");
    return STEP_STORE;
}

static enum step reqmod_failed(struct transaction *transaction, const struct adapt_chain *chain) {
    const struct exchange *exchange = transaction->exchange;
    if (exchange->body_timed_out)
        return fail_with(transaction, 408, "the request's body did not arrive in time");
    if (exchange->body_failed)
        return fail_with(transaction, 400, "the request's body broke off");
    return fail_with(transaction, 502, chain->error);
}

enum step step_reqmod(struct transaction *transaction) {
    if (transaction->reqmod == NULL) {
        transaction->reqmod = arena_alloc(&transaction->arena, sizeof *transaction->reqmod);
        reqmod_start(transaction, ADAPT_REQMOD_PRECACHE, transaction->reqmod);
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
    struct reqmod_postcache *outgoing = transaction->reqmod_postcache;
    struct http_head *request = &outgoing->head;
    struct slice text;
    struct url url;
    transaction->request.body = transaction->message.body;
    transaction->message.body = NULL;
    outgoing->url = transaction->request.url;
    outgoing->authority = transaction->request.authority;
    if (!outgoing->chain.modified)
        return STEP_FETCH;
    request->method_id = http_method_lookup(request->method);
    if (transaction->request.is_connect)
        return STEP_FETCH;
    if (!parse_target(transaction, request, &url) ||
        !request_write_url(transaction, &url, &outgoing->url, &text, &outgoing->authority) ||
        !origin_can_fetch(outgoing->url.scheme))
        return fail_with(transaction, 502, unusable_url);
    if (!slice_equal(request->method, transaction->request.head->method))
        return fail_with(transaction, 502,
                         "an adaptation service at reqmod_postcache changed the method");
    return STEP_FETCH;
}

/* Nothing that is stored has a part in the answer. */
static enum step adopt_late_response(struct transaction *transaction) {
    object_release(&transaction->lookup.object);
    object_release(&transaction->lookup.part);
    transaction->lookup.revalidating = false;
    return adopt_response(transaction);
}

enum step step_reqmod_postcache(struct transaction *transaction) {
    if (transaction->reqmod_postcache == NULL) {
        transaction->reqmod_postcache =
            arena_alloc(&transaction->arena, sizeof *transaction->reqmod_postcache);
        reqmod_start(transaction, ADAPT_REQMOD_POSTCACHE, &transaction->reqmod_postcache->chain);
    }
    switch (transaction->reqmod_postcache->chain.state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: return adopt_outgoing(transaction);
    case ADAPT_SATISFIED: return adopt_late_response(transaction);
    default: return reqmod_failed(transaction, &transaction->reqmod_postcache->chain);
    }
}
