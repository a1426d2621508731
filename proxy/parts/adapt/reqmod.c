#include "adapt/reqmod.h"

#include "adapt/adaptation.h"
#include "adapt/shown_message.h"
#include "adapt/told.h"
#include "origin/call.h"
#include "transaction/disclosed_identity.h"
#include "transaction/fail.h"
#include "transaction/request_rules.h"

/* REQMOD: asks services that change or answer requests before the cache is searched. */

void reqmod_start(struct transaction *transaction, struct reqmod *reqmod, enum adapt_point point,
                  struct http_head *head) {
    const struct adapt_set *set = adapt_set_of(transaction);
    struct adapter *chosen[ADAPT_CHAIN_MAX];
    const uint64_t *rules = request_rules_without_type(transaction);
    unsigned count = adapt_set_choose(set, point, rules, chosen);
    reqmod->by_who = adapt_set_asks_who(set, point, rules);
    message_begin(transaction, &reqmod->message, head, NULL);
    struct http_head *before = arena_alloc(&transaction->arena, sizeof *before);
    http_head_assign(before, head);
    reqmod->before = before;
    reqmod->message.body = request_give_body(transaction);
    adapt_chain_start(&reqmod->chain, set, chosen, count, &reqmod->message, &transaction->arena,
                      transaction->net, &transaction->task);
}

bool reqmod_is_wanted_at(struct transaction *transaction, enum adapt_point point) {
    const struct adapt_set *set = adapt_set_of(transaction);
    return adapt_set_has(set, point, request_rules(transaction)) &&
           adapt_set_has(set, point, request_rules_without_type(transaction));
}

bool reqmod_parse_target(const struct transaction *transaction, const struct http_head *head,
                         struct url *url) {
    const struct url_scheme *scheme = url_scheme_find(transaction->request.url.scheme);
    struct slice target = head->target;
    if (target.length > 0 && target.base[0] == '/')
        return url_parse_authority(url, http_head_value(head, HTTP_HOST), scheme->port) &&
               url_set_target(url, scheme, target);
    return url_parse(url, target);
}

enum step reqmod_fail_url(struct transaction *transaction) {
    return fail_with(transaction, 502,
                     "an adaptation service changed the URL to one that can't be used");
}

void reqmod_take_body(struct transaction *transaction, struct reqmod *reqmod) {
    request_put_body(transaction, &reqmod->message.body);
}

void reqmod_change_connect(struct transaction *transaction, const struct http_head *head) {
    if (transaction->early_tunnel != NULL)
        transaction->early_tunnel->class->take_request(transaction, head);
}

/* The adapted request may have another destination. */
static enum step adopt_request(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    struct url url;
    const struct reqmod *reqmod = adaptation_of(transaction)->reqmod;
    reqmod_take_body(transaction, adaptation_of(transaction)->reqmod);
    if (!reqmod->chain.modified)
        return STEP_NEXT;
    transaction->adapting->request_changed = true;
    if (told_who_asks(transaction, &reqmod->chain, reqmod->by_who))
        disclosed_identity_note_request(transaction, reqmod->before, reqmod->by_who);
    request_changed(transaction);
    request->method_id = http_method_lookup(request->method);
    if (transaction->request.kind == REQUEST_CONNECT) {
        reqmod_change_connect(transaction, request);
        return STEP_NEXT;
    }
    if (transaction->request.kind == REQUEST_UPGRADE && request->method_id != HTTP_METHOD_GET)
        return fail_with(transaction, 502,
                         "an adaptation service changed the method of an upgrade request");
    if (!reqmod_parse_target(transaction, request, &url) || !request_set_url(transaction, &url) ||
        !origin_can_fetch(transaction->request.url.scheme))
        return reqmod_fail_url(transaction);
    request_show_host(transaction, http_head_value(request, HTTP_HOST));
    return STEP_NEXT;
}

enum step reqmod_adopt_response(struct transaction *transaction, struct reqmod *reqmod) {
    struct http_head *answer = reqmod->message.response;
    if (transaction->early_tunnel != NULL && answer != NULL && answer->status >= 200)
        return transaction->early_tunnel->class->take_answer(transaction, answer,
                                                             &reqmod->message.body);
    response_set(&transaction->response, reqmod->message.response, &reqmod->message.body);
    outcome_set_result(&transaction->outcome, RESULT_SERVICE);
    response_set_times(&transaction->response, transaction->net->loop->wall,
                       transaction->net->loop->wall);
    if (transaction->response.head == NULL || transaction->response.head->status < 200)
        return fail_with(transaction, 502,
                         "an adaptation service sent an answer that can't be used");
    /* To the client any 2xx means that the tunnel is open, whatever body comes with it. */
    if (transaction->request.kind == REQUEST_CONNECT && transaction->response.head->status < 300)
        return fail_with(transaction, 403, "an adaptation service answered instead of the origin");
    return STEP_STORE;
}

enum step reqmod_fail(struct transaction *transaction, const struct reqmod *reqmod) {
    const struct exchange *exchange = transaction->exchange;
    if (exchange->body_too_large)
        return transaction->limiting->class->refuse_request(transaction);
    if (exchange->body_timed_out)
        return fail_with(transaction, 408, "the request's body did not arrive in time");
    if (exchange->body_failed)
        return fail_with(transaction, 400,
                         "the client sent an incomplete or malformed request body");
    return fail_with(transaction, 502, reqmod->chain.error);
}

void reqmod_close(struct transaction *transaction, struct reqmod *reqmod) {
    if (reqmod == NULL)
        return;
    response_close_body(&transaction->response);
    if (transaction->early_tunnel != NULL)
        transaction->early_tunnel->class->close_answer(transaction);
    adapt_chain_close(&reqmod->chain);
}

static enum step reqmod_run(struct transaction *transaction) {
    struct reqmod *reqmod = adaptation_of(transaction)->reqmod;
    if (reqmod == NULL) {
        reqmod = arena_alloc(&transaction->arena, sizeof *reqmod);
        adaptation_begin(transaction)->reqmod = reqmod;
        request_own(transaction);
        request_take_body(transaction);
        reqmod_start(transaction, reqmod, ADAPT_REQMOD_PRECACHE, transaction->request.head);
    }
    switch (reqmod->chain.state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: return adopt_request(transaction);
    case ADAPT_SATISFIED: return reqmod_adopt_response(transaction, reqmod);
    default: return reqmod_fail(transaction, reqmod);
    }
}

static bool reqmod_is_needed(const struct settings *settings) {
    return settings->asks_at[ADAPT_REQMOD_PRECACHE];
}

/* A request repeated in the background has been adapted before. */
static bool reqmod_is_wanted(struct transaction *transaction) {
    return !transaction->exchange->background &&
           reqmod_is_wanted_at(transaction, ADAPT_REQMOD_PRECACHE);
}

/* The request's body may be read from the services. */
static void reqmod_end(struct transaction *transaction) {
    request_close_body(transaction);
    reqmod_close(transaction, adaptation_of(transaction)->reqmod);
}

static const struct adapt_chain *reqmod_chain(const struct transaction *transaction) {
    const struct reqmod *reqmod = adaptation_of(transaction)->reqmod;
    return reqmod != NULL ? &reqmod->chain : NULL;
}

const struct step_row reqmod_step = {
    .name = "REQMOD",
    .step = STEP_REQMOD,
    .run = reqmod_run,
    .is_needed = reqmod_is_needed,
    .is_wanted = reqmod_is_wanted,
    .begins = true,
    .let_go = reqmod_end,
    .end = reqmod_end,
    .chain = reqmod_chain,
};
