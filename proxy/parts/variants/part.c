#include "part.h"

#include "adapt/steps.h"
#include "transaction/fail.h"
#include "transaction/request_rules.h"
#include "variants/adapted_variant.h"

/* The part variants: what services behind the cache make of stored responses is remembered. */

/* VARIANT: what services behind the cache make of a stored response for all clients. The variant is
 * used again where there is one. Else it is made, once for all who want it, and stored beside what
 * it is made of. */

static enum step variant_go_on(struct transaction *transaction) {
    adapted_variant_set_applied(transaction);
    return variant_of(transaction)->others ? STEP_RESPMOD_POSTCACHE : STEP_DELIVER;
}

/* The services that want this response, of those whose variants are stored. */
static unsigned variant_choose(struct transaction *transaction, const struct http_head *response,
                               struct adapter **chosen) {
    const uint64_t *rules = request_rules_for_response(transaction, response);
    unsigned all =
        adapt_set_choose(adapt_set_of(transaction), ADAPT_RESPMOD_POSTCACHE, rules, chosen);
    unsigned count = 0;
    while (count < all && adapted_variant_includes(variant_of(transaction), chosen[count]))
        count++;
    return count;
}

/* No variant is stored, so this request or another one has to make it. */
static enum step variant_make(struct transaction *transaction) {
    struct adapter *chosen[ADAPT_CHAIN_MAX];
    struct http_head *response = postcache_head(transaction, transaction_object(transaction));
    unsigned count = variant_choose(transaction, response, chosen), status = response->status;
    if (transaction->request.head->method_id == HTTP_METHOD_HEAD || status == 304 || status == 206)
        return STEP_RESPMOD_POSTCACHE;
    if (count == 0)
        return variant_go_on(transaction);
    request_own(transaction);
    if (!adapted_variant_join(transaction))
        adapted_variant_ask(transaction, response, chosen, count);
    return STEP_WAIT;
}

static enum step variant_use(struct transaction *transaction, uint64_t *counter) {
    (*counter)++;
    return variant_go_on(transaction);
}

static enum step variant_begin(struct transaction *transaction) {
    const struct adapted_variant *variant = variant_of(transaction);
    struct counters *counters = &transaction->net->counters;
    if (variant->only) {
        struct object_provenance provenance = object_provenance(transaction_object(transaction));
        return variant_use(transaction, provenance.kind == OBJECT_LEFT_ALONE
                                            ? &counters->adapted_left_alone
                                            : &counters->adapted_hits);
    }
    if (variant->applied)
        return variant_use(transaction, &counters->adapted_left_alone);
    if (transaction->adapting->variant != NULL && adapted_variant_renew(transaction))
        return variant_use(transaction, &counters->adapted_hits);
    return variant_make(transaction);
}

static enum step variant_run(struct transaction *transaction) {
    const struct adapted_variant *variant = variant_of(transaction);
    storing_settle(transaction);
    if (variant->state == ADAPTED_VARIANT_FOLLOWS && !adapted_variant_has_followed(transaction))
        return STEP_WAIT;
    if (variant->state == ADAPTED_VARIANT_NONE)
        return variant_begin(transaction);
    switch (variant->postcache->chain.state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: adapted_variant_take_answer(transaction); return variant_go_on(transaction);
    default: break;
    }
    adapted_variant_finish(transaction, SHARED_FETCH_FAILED);
    return fail_with(transaction, 502, variant->postcache->chain.error);
}

static bool variant_is_wanted(struct transaction *transaction) {
    return variant_of(transaction) != NULL && transaction_object(transaction) != NULL &&
           respmod_postcache_is_wanted(transaction);
}

static const struct adapt_chain *variant_chain(const struct transaction *transaction) {
    const struct adapted_variant *variant = variant_of(transaction);
    return variant != NULL && variant->postcache != NULL ? &variant->postcache->chain : NULL;
}

static const struct step_row variant_step = {
    .name = "VARIANT",
    .step = STEP_VARIANT,
    .run = variant_run,
    .is_needed = respmod_postcache_is_needed,
    .is_wanted = variant_is_wanted,
    .begins = true,
    .let_go = adapted_variant_let_client_go,
    .end = adapted_variant_end,
    .chain = variant_chain,
};

static const struct step_row *const variant_steps[] = {&variant_step, NULL};

const struct part part_variants = {.steps = variant_steps, .variants = &adapted_variant_class};
