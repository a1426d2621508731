#include "transaction/adapting.h"

#include "transaction/transaction.h"

bool adapting_behind_cache(struct transaction *transaction) {
    return transaction->settings->asks_at[ADAPT_RESPMOD_POSTCACHE] &&
           transaction->host->adapting->wants_reply(transaction);
}

void adapting_forget_variant(struct transaction *transaction) {
    const struct adapting *adapting = transaction->adapting;
    if (adapting != NULL && adapting->variants != NULL)
        adapting->variants->forget(transaction);
}
