#include "access/destination.h"
#include "access/refusal.h"
#include "access/state.h"
#include "transaction/fail.h"

/* RECHECK: decides again about a request that a service or a rewrite section has changed since ACCESS. It
 * can only refuse what ACCESS has let in: it never asks the client for credentials and never redirects. */

static enum step recheck_run(struct transaction *transaction) {
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
    return decision.outcome == ACCESS_ALLOW ? STEP_NEXT : access_deny(transaction, &decision);
}

/* Nothing else changes what ACCESS has decided about. */
static bool recheck_is_needed(const struct settings *settings) {
    return accesses_of(settings)->is_asked &&
           (settings->any_rewrite || settings->asks_at[ADAPT_REQMOD_PRECACHE]);
}

/* Services can't change where a CONNECT goes. */
static bool recheck_is_wanted(struct transaction *transaction) {
    const struct access_state *access = access_state(transaction);
    if (access != NULL && transaction->request.kind == REQUEST_CONNECT)
        return false;
    return access == NULL || !slice_equal(access->url, transaction->request.url_text) ||
           (transaction->adapting != NULL && transaction->adapting->request_changed);
}

const struct step_row recheck_step = {
    .name = "RECHECK",
    .step = STEP_RECHECK,
    .run = recheck_run,
    .is_needed = recheck_is_needed,
    .is_wanted = recheck_is_wanted,
    .end = access_end,
};
