#include "transaction/steps/recheck.h"

#include "transaction/access.h"
#include "transaction/access_destination.h"
#include "transaction/fail.h"
#include "transaction/steps/access.h"
#include "transaction/steps/reqmod.h"
#include "transaction/transaction.h"

/* RECHECK: decides again about a request that a service or a rewrite section has changed. */

enum step recheck_next(struct transaction *transaction) {
    const struct access *access = transaction->access;
    if (!transaction->settings->any_access)
        return STEP_LOOKUP;
    if (access != NULL && transaction->request.kind == REQUEST_CONNECT)
        return STEP_LOOKUP; /* services can't change where it goes */
    bool changed = access == NULL || !slice_equal(access->url, transaction->request.url_text) ||
                   (transaction->reqmod != NULL && transaction->reqmod->chain.modified);
    return changed ? STEP_RECHECK : STEP_LOOKUP;
}

enum step step_recheck(struct transaction *transaction) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    if (transaction->access == NULL)
        return fail_denied(transaction, "no access rule has decided about this request");
    access_destination_begin_again(transaction);
    if (!access_destination_is_known(transaction))
        return STEP_WAIT;
    access_ask(transaction, &subject, &question);
    access_decide(&question, &decision);
    if (decision.outcome == ACCESS_RESOLVE) {
        if (!access_destination_resolve(transaction))
            return STEP_WAIT;
        access_destination_is_known(transaction);
        access_ask(transaction, &subject, &question);
        access_decide(&question, &decision);
    }
    access_note_again(transaction, &question, &decision);
    return decision.outcome == ACCESS_ALLOW ? STEP_LOOKUP : access_deny(transaction, &decision);
}
