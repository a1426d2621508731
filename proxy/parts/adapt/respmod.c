#include "adapt/respmod.h"

#include "adapt/adaptation.h"
#include "adapt/shown_message.h"
#include "adapt/told.h"
#include "transaction/disclosed_identity.h"
#include "transaction/fail.h"
#include "transaction/internal.h"
#include "transaction/request_rules.h"

/* RESPMOD: asks services that change responses before the cache stores them. Such a response is
 * adapted once and served many times. */

/* All services that might have been asked. A look-up does not know the response yet. `chosen`: those
 * by the rules of the response. */
static void note_services(struct transaction *transaction, const uint64_t *rules,
                          struct adapter *const *chosen, unsigned count) {
    struct adapter *services[ADAPT_CHAIN_MAX];
    if (request_rules(transaction) != rules) {
        count = adapt_set_choose(adapt_set_of(transaction), ADAPT_RESPMOD_PRECACHE,
                                 request_rules(transaction), services);
        chosen = services;
    }
    chain_tags_begin(&adaptation_of(transaction)->respmod->mark, chosen, count);
}

static void respmod_start(struct transaction *transaction) {
    const struct adapt_set *set = adapt_set_of(transaction);
    struct adapter *chosen[ADAPT_CHAIN_MAX];
    const uint64_t *rules = request_rules_for_response(transaction, transaction->response.head);
    unsigned count = adapt_set_choose(set, ADAPT_RESPMOD_PRECACHE, rules, chosen);
    struct respmod *respmod = arena_alloc(&transaction->arena, sizeof *respmod);
    adaptation_begin(transaction)->respmod = respmod;
    note_services(transaction, rules, chosen, count);
    respmod->by_who = adapt_set_asks_who(set, ADAPT_RESPMOD_PRECACHE, rules);
    message_begin(transaction, &respmod->message, message_copy_request(transaction),
                  transaction->response.head);
    respmod->message.body = response_give_body(&transaction->response);
    respmod->expected_length = respmod->message.body != NULL ? respmod->message.body->length : 0;
    adapt_chain_start(&respmod->chain, set, chosen, count, &respmod->message, &transaction->arena,
                      transaction->net, &transaction->task);
    if (transaction->host->patience != NULL)
        transaction->host->patience->begin(transaction, chosen, count);
}

static enum step respmod_answer_head(struct transaction *transaction) {
    struct adapter *chosen[ADAPT_CHAIN_MAX];
    unsigned count = adapt_set_choose(
        adapt_set_of(transaction), ADAPT_RESPMOD_PRECACHE,
        request_rules_for_response(transaction, transaction->response.head), chosen);
    message_remove_untold(transaction, transaction->response.head, chosen, count);
    return STEP_NEXT;
}

/* For STORE. */
static void respmod_note(struct adapting *adapting, const struct respmod *respmod) {
    adapting->asked = true;
    adapting->unable |= respmod->chain.unable;
    adapting->missed = respmod->chain.bypassed;
    adapting->for_one |= !adapt_chain_is_storable(&respmod->chain);
}

static enum step respmod_run(struct transaction *transaction) {
    if (adaptation_of(transaction)->respmod == NULL) {
        if (transaction->request.head->method_id == HTTP_METHOD_HEAD)
            return respmod_answer_head(transaction);
        respmod_start(transaction);
    }
    struct respmod *respmod = adaptation_of(transaction)->respmod;
    switch (respmod->chain.state) {
    case ADAPT_RUNNING:
        return transaction->adapting->patience != NULL
                   ? transaction->adapting->patience->wait(transaction)
                   : STEP_WAIT;
    case ADAPT_DONE: break;
    default: return fail_with(transaction, 502, respmod->chain.error);
    }
    chain_tags_take(&respmod->mark, &respmod->chain);
    respmod_note(transaction->adapting, respmod);
    if (told_who_asks(transaction, &respmod->chain, respmod->by_who))
        disclosed_identity_note_response(transaction);
    response_set(&transaction->response, respmod->message.response, &respmod->message.body);
    return STEP_NEXT;
}

void respmod_give_result(struct transaction *transaction, struct http_head **headp,
                         struct source **bodyp) {
    struct adapt_message *message = &adaptation_of(transaction)->respmod->message;
    *headp = message->response;
    *bodyp = message->body;
    message->body = NULL;
}

void respmod_keep_quiet(struct transaction *transaction) {
    adapt_chain_keep_quiet(&adaptation_of(transaction)->respmod->chain);
}

void respmod_note_seen(const struct transaction *transaction,
                       struct object_provenance *provenance) {
    const struct chain_tags *mark = &adaptation_of(transaction)->respmod->mark;
    if (chain_tags_tag(mark) == 0)
        return;
    provenance->kind = OBJECT_SEEN;
    provenance->chain = chain_tags_chain(mark->services, mark->count);
    provenance->tag = chain_tags_tag(mark);
}

bool respmod_is_outdated(struct transaction *transaction, const struct object *object) {
    struct adapter *services[ADAPT_CHAIN_MAX];
    struct object_provenance provenance = object_provenance(object);
    unsigned count = adapt_set_choose(adapt_set_of(transaction), ADAPT_RESPMOD_PRECACHE,
                                      request_rules(transaction), services);
    return provenance.kind == OBJECT_SEEN && count > 0 &&
           chain_tags_chain(services, count) == provenance.chain &&
           chain_tags_are_old(services, count, provenance.tag);
}

/* The response may be read from a service, and a page that waits for it tells of its end. */
static void respmod_end(struct transaction *transaction) {
    response_close_body(&transaction->response);
    if (adaptation_of(transaction)->respmod == NULL)
        return;
    if (transaction->adapting->patience != NULL)
        transaction->adapting->patience->end(transaction);
    adapt_chain_close(&adaptation_of(transaction)->respmod->chain);
}

static bool respmod_is_needed(const struct settings *settings) {
    return settings->asks_at[ADAPT_RESPMOD_PRECACHE];
}

static bool respmod_is_wanted(struct transaction *transaction) {
    const struct adapt_set *set = adapt_set_of(transaction);
    const struct http_head *response = transaction->response.head;
    return adapt_set_has(set, ADAPT_RESPMOD_PRECACHE, request_rules(transaction)) &&
           response->status != 304 && response->status != 206 && !internal_is_asked(transaction) &&
           adapt_set_has(set, ADAPT_RESPMOD_PRECACHE,
                         request_rules_for_response(transaction, response));
}

static const struct adapt_chain *respmod_chain(const struct transaction *transaction) {
    const struct respmod *respmod = adaptation_of(transaction)->respmod;
    return respmod != NULL ? &respmod->chain : NULL;
}

const struct step_row respmod_step = {
    .name = "RESPMOD",
    .step = STEP_RESPMOD,
    .run = respmod_run,
    .is_needed = respmod_is_needed,
    .is_wanted = respmod_is_wanted,
    .begins = true,
    .end = respmod_end,
    .chain = respmod_chain,
};
