#include "access/destination.h"
#include "access/refusal.h"
#include "access/state.h"
#include "transaction/fail.h"
#include "transaction/proof.h"
#include "transaction/request_rules.h"
#include "transaction/steps/admit.h"
#include "transaction/variables.h"

/* ACCESS: who the client is, and whether the request is let in. */

/* ---- who the client is -------------------------------------------------------------------- */

/* The authenticators of all sections that could ask for this request; or all, where only rules of
 * other kinds ask for the user. */
static proof_set authenticators_wanted(const struct access_question *question) {
    const struct settings *settings = question->settings;
    proof_set wanted = 0;
    for (const struct access_settings *section = access_find_asking(question, 0); section != NULL;
         section =
             access_find_asking(question, (size_t)(section - accesses_of(settings)->list) + 1))
        for (size_t i = 0; i < section->authenticator_count; i++)
            wanted |= (proof_set)1 << section->authenticators[i];
    bool others = (rules_ask(settings->rules) & (CLASS_ASKS_USER | CLASS_ASKS_GROUP)) != 0;
    return wanted == 0 && others ? ~(proof_set)0 : wanted;
}

/* False: an error page is there. */
static bool begin_proof(struct transaction *transaction) {
    struct access_state *access = access_state(transaction);
    struct class_subject subject;
    struct access_question question;
    const struct proof_class *proofs = transaction->settings->proofs;
    if (!access_may_challenge(transaction) || proofs == NULL)
        return true;
    access_ask(transaction, &subject, &question);
    proof_set wanted = authenticators_wanted(&question);
    return wanted == 0 || proofs->begin(transaction, wanted, &access->proof);
}

/* ---- what happens ------------------------------------------------------------------------- */

static enum step ask_for_credentials(struct transaction *transaction,
                                     const struct access_settings *section) {
    transaction->net->counters.access_challenged++;
    return transaction->settings->proofs->ask(transaction, access_state(transaction)->proof,
                                              section);
}

static enum step access_redirect(struct transaction *transaction,
                                 const struct access_decision *decision) {
    const struct access_settings *section = decision->section;
    if (transaction->request.kind == REQUEST_CONNECT)
        return access_deny(transaction, decision);
    struct slice to = text_template_write(section->to_template, transaction_variable, transaction,
                                          TEXT_URL, &transaction->arena);
    if (slice_equal(to, transaction->request.url_text))
        return fail_with(transaction, 508,
                         "an access rule of this proxy redirects this URL to itself");
    request_own(transaction);
    transaction->net->counters.access_redirected++;
    delivery_redirect(transaction, section->status, to);
    return STEP_DELIVER;
}

/* Is the section one that lets clients use the method of the request? */
static bool lets_purge(const struct access_settings *section, const struct http_head *request) {
    if (section == NULL || section->action == ACCESS_ACTION_TUNNEL)
        return false;
    return request->method_id == HTTP_METHOD_PURGE ? section->purges : section->bans;
}

static enum step access_decide_now(struct transaction *transaction) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    access_ask(transaction, &subject, &question);
    access_decide(&question, &decision);
    bool for_others = accesses_of(transaction->settings)->others_ask_destination &&
                      question.may_resolve && subject.destination_pending;
    if (decision.outcome == ACCESS_RESOLVE || for_others) {
        if (!access_destination_resolve(transaction))
            return STEP_WAIT;
        access_destination_is_known(transaction);
        return access_decide_now(transaction); /* which can't ask for the address again */
    }
    access_note(transaction, &question, &decision);
    switch (decision.outcome) {
    case ACCESS_ASK: return ask_for_credentials(transaction, decision.section);
    case ACCESS_REDIRECT: return access_redirect(transaction, &decision);
    case ACCESS_DENY: return access_deny(transaction, &decision);
    default: break;
    }
    if (admit_is_purge(transaction->request.head) &&
        !lets_purge(decision.section, transaction->request.head))
        return admit_refuse_purge(transaction);
    return STEP_NEXT;
}

static enum step access_begin(struct transaction *transaction) {
    struct identity *known = transaction->exchange->identity;
    access_state_begin(transaction);
    access_destination_take_redirection(transaction);
    if (known != NULL && transaction->identity == NULL) {
        identity_reference(known);
        access_set_identity(transaction, &known);
    } else if (known == NULL && !begin_proof(transaction)) {
        return fail_with(transaction, 400,
                         "the credentials are in several fields, are empty, or are too long");
    }
    return STEP_ACCESS;
}

static enum step access_run(struct transaction *transaction) {
    if (transaction->access == NULL && access_begin(transaction) != STEP_ACCESS)
        return STEP_DELIVER;
    struct access_state *access = access_state(transaction);
    if (access->proof != NULL && !access->proof->class->is_over(transaction, access->proof))
        return STEP_WAIT;
    if (access->proof != NULL)
        access->base.answer = access->proof->answer;
    if (!access_destination_is_known(transaction))
        return STEP_WAIT;
    if (transaction->exchange->is_connection && transaction->settings->access_names_servers &&
        step_is_listed(transaction->settings->steps, STEP_INTERCEPT)) {
        access->deferred = true;
        access_note_url(transaction);
        return STEP_NEXT;
    }
    return access_decide_now(transaction);
}

static bool access_is_needed(const struct settings *settings) {
    return accesses_of(settings)->is_asked;
}

const struct step_row access_step = {
    .name = "ACCESS",
    .step = STEP_ACCESS,
    .run = access_run,
    .is_needed = access_is_needed,
    .is_wanted = access_has_to_decide,
    .end = access_end,
};
