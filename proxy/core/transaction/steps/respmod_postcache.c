#include "transaction/steps/respmod_postcache.h"

#include "base/assert.h"
#include "transaction/adapted_variant.h"
#include "transaction/fail.h"
#include "transaction/internal.h"
#include "transaction/message.h"
#include "transaction/postcache.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"

/* RESPMOD_POSTCACHE: asks services that change responses on their way to a client, stored or
 * not. The stored response does not change. A changed response has neither the validators nor
 * the ranges of the stored one. An unchanged response is sent like any stored response. */

bool respmod_postcache_may_want(struct transaction *transaction) {
    const struct adapt_set *set = transaction->adapt;
    return set->any[ADAPT_RESPMOD_POSTCACHE] && !transaction->exchange->background &&
           transaction->request.kind != REQUEST_CONNECT && !internal_is_asked(transaction) &&
           adapt_set_has(set, ADAPT_RESPMOD_POSTCACHE, request_rules(transaction));
}

static enum step respmod_postcache_answer_head(struct transaction *transaction,
                                               struct http_head *response,
                                               struct adapter *const *chosen, unsigned count) {
    message_remove_untold(transaction, response, chosen, count);
    http_head_remove(response, HTTP_ETAG);
    struct respmod_postcache *adapted = transaction->respmod_postcache;
    adapted->result = POSTCACHE_ADAPTED;
    adapted->head = response;
    adapted->postcache.body = body_of_bytes(slice_make("", 0));
    return STEP_DELIVER;
}

/* Returns another step when no service has to see the response. */
static enum step respmod_postcache_begin(struct transaction *transaction) {
    struct adapter *chosen[ADAPT_CHAIN_MAX];
    const struct object *subject = transaction_shown(transaction);
    struct http_head *response = postcache_head(transaction, subject);
    const uint64_t *rules = request_rules_for_response(transaction, response);
    unsigned count = adapt_set_choose(transaction->adapt, ADAPT_RESPMOD_POSTCACHE, rules, chosen);
    if (transaction->variant != NULL)
        count = adapted_variant_leave_out(transaction->variant, chosen, count);
    if (count == 0 || response->status == 304 || response->status == 206)
        return STEP_DELIVER;
    request_own(transaction);
    transaction->respmod_postcache =
        arena_zalloc(&transaction->arena, sizeof *transaction->respmod_postcache);
    if (transaction->request.head->method_id == HTTP_METHOD_HEAD)
        return respmod_postcache_answer_head(transaction, response, chosen, count);
    postcache_start(&transaction->respmod_postcache->postcache, transaction, subject, response,
                    chosen, count);
    return STEP_WAIT;
}

static void begin_pump(struct transaction *transaction, int64_t length) {
    struct respmod_postcache *adapted = transaction->respmod_postcache;
    struct postcache *postcache = &adapted->postcache;
    if (postcache->message.body == NULL) {
        postcache->body = body_of_bytes(slice_make("", 0));
        return;
    }
    postcache->body = body_new(transaction->net, BODY_PASSING, length);
    pump_start(&postcache->pump, transaction->net->loop, &postcache->message.body, postcache->body,
               0, &transaction->task);
}

/* A response that is not stored can be read only once, and the services have done that. */
static bool can_be_read_again(const struct transaction *transaction) {
    const struct object *subject = transaction_shown(transaction);
    return subject != NULL && subject->body->kind != BODY_PASSING;
}

/* A body that is not stored, or will not be, has passed through the services. A stored body can
 * be sent from the cache. */
static enum step unchanged(struct transaction *transaction) {
    struct respmod_postcache *adapted = transaction->respmod_postcache;
    struct postcache *postcache = &adapted->postcache;
    if (can_be_read_again(transaction)) {
        source_close(&postcache->message.body);
        adapt_chain_close(&postcache->chain);
        return STEP_DELIVER;
    }
    begin_pump(transaction, postcache->message.body != NULL ? postcache->message.body->length : 0);
    if (transaction_object(transaction) != NULL) {
        adapted->result = POSTCACHE_ADAPTED;
        adapted->head = postcache->message.response;
        return STEP_DELIVER;
    }
    adapted->result = POSTCACHE_PASSED;
    return STEP_DELIVER;
}

static enum step respmod_postcache_changed(struct transaction *transaction) {
    struct respmod_postcache *adapted = transaction->respmod_postcache;
    struct postcache *postcache = &adapted->postcache;
    const struct object *subject = transaction_shown(transaction);
    struct slice etag = subject != NULL ? object_etag(subject)
                                        : http_head_value(transaction->response.head, HTTP_ETAG);
    adapted->result = POSTCACHE_ADAPTED;
    adapted->head = postcache->message.response;
    postcache_forget_etag(adapted->head, etag);
    begin_pump(transaction, postcache->message.body != NULL ? postcache->message.body->length : 0);
    return STEP_DELIVER;
}

static enum step respmod_postcache_run(struct transaction *transaction) {
    storing_settle(transaction);
    if (transaction->respmod_postcache == NULL)
        return respmod_postcache_begin(transaction);
    switch (transaction->respmod_postcache->postcache.chain.state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: break;
    default:
        return fail_with(transaction, 502, transaction->respmod_postcache->postcache.chain.error);
    }
    return transaction->respmod_postcache->postcache.chain.modified
               ? respmod_postcache_changed(transaction)
               : unchanged(transaction);
}

bool respmod_postcache_answers(const struct transaction *transaction) {
    const struct respmod_postcache *adapted = transaction->respmod_postcache;
    return adapted != NULL && adapted->result == POSTCACHE_ADAPTED;
}

struct body *respmod_postcache_body(const struct transaction *transaction) {
    const struct respmod_postcache *adapted = transaction->respmod_postcache;
    return adapted != NULL && adapted->result == POSTCACHE_PASSED ? adapted->postcache.body
                                                                  : transaction->storing.body;
}

static void respmod_postcache_end(struct transaction *transaction) {
    if (transaction->respmod_postcache != NULL)
        postcache_end(&transaction->respmod_postcache->postcache);
}

bool respmod_postcache_is_needed(const struct settings *settings) {
    return settings_ask_at(settings, ADAPT_RESPMOD_POSTCACHE);
}

bool respmod_postcache_is_wanted(struct transaction *transaction) {
    return transaction->outcome.result != RESULT_SERVICE && respmod_postcache_may_want(transaction);
}

static const struct adapt_chain *respmod_postcache_chain(const struct transaction *transaction) {
    const struct respmod_postcache *adapted = transaction->respmod_postcache;
    return adapted != NULL ? &adapted->postcache.chain : NULL;
}

const struct step_row respmod_postcache_step = {
    .name = "RESPMOD_POSTCACHE",
    .step = STEP_RESPMOD_POSTCACHE,
    .run = respmod_postcache_run,
    .is_needed = respmod_postcache_is_needed,
    .is_wanted = respmod_postcache_is_wanted,
    .begins = true,
    .let_go = respmod_postcache_end,
    .end = respmod_postcache_end,
    .chain = respmod_postcache_chain,
};
