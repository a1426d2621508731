#include "adapt/adaptation.h"
#include "adapt/postcache.h"
#include "adapt/shown_message.h"
#include "adapt/steps.h"
#include "transaction/fail.h"
#include "transaction/request_rules.h"

/* RESPMOD_POSTCACHE: asks services that change responses on their way to a client, stored or
 * not. The stored response does not change. A changed response has neither the validators nor
 * the ranges of the stored one. An unchanged response is sent like any stored response. */

/* For DELIVER. head NULL: that of the response stays. */
static enum step give(struct transaction *transaction, struct http_head *head) {
    transaction->adapting->head = head;
    transaction->adapting->body = adaptation_of(transaction)->respmod_postcache->body;
    return STEP_DELIVER;
}

static enum step respmod_postcache_answer_head(struct transaction *transaction,
                                               struct http_head *response,
                                               struct adapter *const *chosen, unsigned count) {
    message_remove_untold(transaction, response, chosen, count);
    http_head_remove(response, HTTP_ETAG);
    adaptation_of(transaction)->respmod_postcache->body = body_of_bytes(slice_make("", 0));
    return give(transaction, response);
}

/* Returns another step when no service has to see the response. */
static enum step respmod_postcache_begin(struct transaction *transaction) {
    struct adapter *chosen[ADAPT_CHAIN_MAX];
    const struct object *subject = transaction_shown(transaction);
    struct http_head *response = postcache_head(transaction, subject);
    const uint64_t *rules = request_rules_for_response(transaction, response);
    unsigned count =
        adapt_set_choose(adapt_set_of(transaction), ADAPT_RESPMOD_POSTCACHE, rules, chosen);
    if (transaction->adapting != NULL && transaction->adapting->variants != NULL)
        count = transaction->adapting->variants->leave_out(transaction, chosen, count);
    if (count == 0 || response->status == 304 || response->status == 206)
        return STEP_DELIVER;
    request_own(transaction);
    struct postcache *postcache = arena_zalloc(&transaction->arena, sizeof *postcache);
    adaptation_begin(transaction)->respmod_postcache = postcache;
    if (transaction->request.head->method_id == HTTP_METHOD_HEAD)
        return respmod_postcache_answer_head(transaction, response, chosen, count);
    postcache_start(postcache, transaction, subject, response, chosen, count);
    return STEP_WAIT;
}

static void begin_pump(struct transaction *transaction, struct postcache *postcache) {
    struct source **body = &postcache->message.body;
    if (*body == NULL) {
        postcache->body = body_of_bytes(slice_make("", 0));
        return;
    }
    postcache->body = body_new(transaction->net, BODY_PASSING, (*body)->length);
    pump_start(&postcache->pump, transaction->net->loop, body, postcache->body, 0,
               &transaction->task);
}

/* A response that is not stored can be read only once, and the services have done that. */
static bool can_be_read_again(const struct transaction *transaction) {
    const struct object *subject = transaction_shown(transaction);
    return subject != NULL && subject->body->kind != BODY_PASSING;
}

/* A body that is not stored, or will not be, has passed through the services. A stored body can
 * be sent from the cache. */
static enum step unchanged(struct transaction *transaction, struct postcache *postcache) {
    if (can_be_read_again(transaction)) {
        source_close(&postcache->message.body);
        adapt_chain_close(&postcache->chain);
        return STEP_DELIVER;
    }
    begin_pump(transaction, postcache);
    return give(transaction,
                transaction_object(transaction) != NULL ? postcache->message.response : NULL);
}

static enum step respmod_postcache_changed(struct transaction *transaction,
                                           struct postcache *postcache) {
    const struct object *subject = transaction_shown(transaction);
    struct slice etag = subject != NULL ? object_etag(subject)
                                        : http_head_value(transaction->response.head, HTTP_ETAG);
    postcache_forget_etag(postcache->message.response, etag);
    begin_pump(transaction, postcache);
    return give(transaction, postcache->message.response);
}

static enum step respmod_postcache_run(struct transaction *transaction) {
    storing_settle(transaction);
    struct postcache *postcache = adaptation_of(transaction)->respmod_postcache;
    if (postcache == NULL)
        return respmod_postcache_begin(transaction);
    switch (postcache->chain.state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: break;
    default: return fail_with(transaction, 502, postcache->chain.error);
    }
    return postcache->chain.modified ? respmod_postcache_changed(transaction, postcache)
                                     : unchanged(transaction, postcache);
}

static void respmod_postcache_end(struct transaction *transaction) {
    if (adaptation_of(transaction)->respmod_postcache != NULL)
        postcache_end(adaptation_of(transaction)->respmod_postcache);
}

bool respmod_postcache_is_needed(const struct settings *settings) {
    return settings->asks_at[ADAPT_RESPMOD_POSTCACHE];
}

bool respmod_postcache_is_wanted(struct transaction *transaction) {
    return transaction->outcome.result != RESULT_SERVICE && adaptation_is_behind_cache(transaction);
}

static const struct adapt_chain *respmod_postcache_chain(const struct transaction *transaction) {
    const struct postcache *postcache = adaptation_of(transaction)->respmod_postcache;
    return postcache != NULL ? &postcache->chain : NULL;
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
