#include "transaction/adapting.h"

#include "transaction/internal.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"

bool adapting_behind_cache(struct transaction *transaction) {
    const struct adapt_set *set = transaction->adapt;
    return set->any[ADAPT_RESPMOD_POSTCACHE] && !transaction->exchange->background &&
           transaction->request.kind != REQUEST_CONNECT && !internal_is_asked(transaction) &&
           adapt_set_has(set, ADAPT_RESPMOD_POSTCACHE, request_rules(transaction));
}

void adapting_forget_variant(struct transaction *transaction) {
    const struct adapting *adapting = transaction->adapting;
    if (adapting != NULL && adapting->variants != NULL)
        adapting->variants->forget(transaction);
}
