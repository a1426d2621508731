#include "adapt/adaptation.h"

#include "adapt/chain.h"
#include "adapt/respmod.h"
#include "transaction/internal.h"
#include "transaction/request_rules.h"

const struct adaptation adaptation_of_none;

bool adaptation_is_behind_cache(struct transaction *transaction) {
    return !transaction->exchange->background && transaction->request.kind != REQUEST_CONNECT &&
           !internal_is_asked(transaction) &&
           adapt_set_has(adapt_set_of(transaction), ADAPT_RESPMOD_POSTCACHE,
                         request_rules(transaction));
}

static bool adaptation_is_before_cache(struct transaction *transaction) {
    return adapt_set_has(adapt_set_of(transaction), ADAPT_RESPMOD_PRECACHE,
                         request_rules(transaction));
}

static bool adaptation_asks_who(struct transaction *transaction, const struct http_head *response) {
    const struct adapt_set *set = adapt_set_of(transaction);
    return adapt_set_asks_who(set, ADAPT_REQMOD_POSTCACHE,
                              request_rules_without_type(transaction)) ||
           adapt_set_asks_who(set, ADAPT_RESPMOD_PRECACHE,
                              request_rules_for_response(transaction, response));
}

const struct adapting_class adaptation_class = {
    .tell = adapt_chain_tell,
    .awaited = adapt_chain_awaited,
    .failed = adapt_chain_failed,
    .wants_response = adaptation_is_before_cache,
    .wants_reply = adaptation_is_behind_cache,
    .asks_who = adaptation_asks_who,
    .is_outdated = respmod_is_outdated,
    .note_seen = respmod_note_seen,
};

void adaptation_make(struct transaction *transaction) {
    struct adaptation *adaptation = arena_alloc(&transaction->arena, sizeof *adaptation);
    *adaptation = (struct adaptation){.adapting.class = &adaptation_class};
    transaction->adapting = &adaptation->adapting;
}
