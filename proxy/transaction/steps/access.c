#include "transaction/steps/access.h"

#include "client/intercepted.h"
#include "identity/authenticator.h"
#include "transaction/access.h"
#include "transaction/access_destination.h"
#include "transaction/fail.h"
#include "transaction/request_rules.h"
#include "transaction/steps/admit.h"
#include "transaction/steps/intercept.h"
#include "transaction/steps/purge.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

/* ACCESS: who the client is, and whether the request is let in. */

/* ---- who the client is -------------------------------------------------------------------- */

/* The user of a CONNECT is that of the requests inside. */
static struct identity *known_identity(const struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    return exchange->identity == NULL && exchange_is_intercepted(exchange)
               ? exchange->ends->intercepted->facts.identity
               : exchange->identity;
}

/* The authenticators of all sections that could ask for this request; or all, where only rules of
 * other kinds ask for the user. */
static proof_set authenticators_wanted(const struct access_question *question) {
    const struct settings *settings = question->settings;
    proof_set wanted = 0;
    for (const struct access_settings *section = access_find_asking(question, 0); section != NULL;
         section = access_find_asking(question, (size_t)(section - settings->accesses) + 1))
        for (size_t i = 0; i < section->authenticator_count; i++)
            for (size_t k = 0; k < settings->authenticator_count; k++)
                if (settings->authenticators[k] == section->authenticators[i])
                    wanted |= (proof_set)1 << k;
    bool others = (rules_ask(settings->rules) & (CLASS_ASKS_USER | CLASS_ASKS_GROUP)) != 0;
    return wanted == 0 && others ? ~(proof_set)0 : wanted;
}

/* False: an error page is there. */
static bool begin_proof(struct transaction *transaction) {
    struct access *access = transaction->access;
    struct class_subject subject;
    struct access_question question;
    struct slice value = slice_make("", 0);
    if (!access_may_challenge(transaction) || transaction->settings->authenticator_count == 0)
        return true;
    access_ask(transaction, &subject, &question);
    proof_set wanted = authenticators_wanted(&question);
    if (wanted == 0)
        return true;
    enum authorization_found found =
        authorization_find(transaction->request.head, proof_field(transaction), &value);
    if (found == AUTHORIZATION_BAD)
        return false;
    request_own(transaction);
    access->proof = proof_begin(transaction, wanted, arena_slice(&transaction->arena, value));
    return true;
}

/* ---- what happens ------------------------------------------------------------------------- */

/* Of a CONNECT, browsers display the page only inside of the connection. */
enum step access_deny(struct transaction *transaction, const struct access_decision *decision) {
    struct access_refusal refusal = access_refusal_of(transaction, decision);
    bool inside = intercept_shows_refusals(transaction);
    if (inside)
        access_refusal_send_elsewhere(&refusal, transaction, decision->section,
                                      transaction->request.url.host);
    if (refusal.location.length > 0)
        transaction->net->counters.access_redirected++;
    else if (access_refusal_is_denial(&refusal))
        transaction->net->counters.client_denied++;
    if (inside) {
        transaction->access->refusal = refusal;
        return STEP_INTERCEPT;
    }
    enum step next = fail_page(transaction, refusal.status, refusal.reason, refusal.page);
    if (access_refusal_is_denial(&refusal))
        outcome_set_result(&transaction->outcome, RESULT_DENIED);
    return next;
}

static enum step ask_for_credentials(struct transaction *transaction,
                                     const struct access_settings *section) {
    const struct proof *proof = transaction->access->proof;
    struct slice challenges[AUTHENTICATOR_CHALLENGES];
    bool reverse = transaction->exchange->listen->mode == LISTEN_REVERSE;
    size_t count = 1;
    transaction->net->counters.access_challenged++;
    if (proof != NULL && proof->refused && proof->state == CHECK_SLOWED)
        return fail_later(transaction, 429,
                          "too many credentials from this client or of this user were wrong",
                          proof->retry_after);
    if (proof != NULL && proof->refused && proof->state == CHECK_UNABLE)
        return fail_with(transaction, 503,
                         proof->reason != NULL ? proof->reason
                                               : "nobody can check the credentials now");
    if (proof != NULL && proof->refused && proof->state == CHECK_CHALLENGE)
        challenges[0] = proof->challenge;
    else
        count = authenticators_challenge(
            section->authenticators, section->authenticator_count, slice_from(section->realm),
            proof != NULL && proof->refused, &transaction->arena, challenges);
    if (count == 0)
        return fail_denied(transaction, "a certificate that the client shows when it connects has "
                                        "to prove who it is");
    return fail_challenge(transaction, reverse ? 401 : 407,
                          proof != NULL && proof->refused
                              ? "the credentials are not those of a user who may do this"
                              : "a user name and its credentials are needed",
                          challenges, count);
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

static enum step access_decide_now(struct transaction *transaction) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    access_ask(transaction, &subject, &question);
    access_decide(&question, &decision);
    bool for_others = transaction->settings->others_ask_destination && question.may_resolve &&
                      subject.destination_pending;
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
    if (purge_is_meant(transaction->request.head) &&
        !purge_is_allowed(transaction->request.head, decision.section))
        return purge_refuse(transaction);
    return admit_next(transaction, STEP_ACCESS);
}

static enum step access_begin(struct transaction *transaction) {
    struct access *access = arena_zalloc(&transaction->arena, sizeof *access);
    struct identity *known = known_identity(transaction);
    transaction->access = access;
    access_destination_take_redirection(transaction);
    if (known != NULL) {
        identity_reference(known);
        access_set_identity(transaction, &known);
    } else if (!begin_proof(transaction)) {
        return fail_with(transaction, 400,
                         "the credentials are in several fields, are empty, or are too long");
    }
    return STEP_ACCESS;
}

bool access_passes(struct transaction *transaction) {
    const struct settings *settings = transaction->settings;
    if (!settings->access_is_plain || transaction->exchange->is_connection ||
        known_identity(transaction) != NULL)
        return false;
    const struct access_settings *section = access_allowing(settings, request_rules(transaction));
    if (section == NULL || transaction->request.rules_unsure)
        return false;
    struct access *access = arena_alloc(&transaction->arena, sizeof *access);
    *access = (struct access){.section = section};
    transaction->access = access;
    access_note_allowed(transaction);
    return true;
}

enum step step_access(struct transaction *transaction) {
    if (transaction->access == NULL && access_begin(transaction) != STEP_ACCESS)
        return STEP_DELIVER;
    struct access *access = transaction->access;
    if (access->proof != NULL && !proof_is_over(transaction, access->proof))
        return STEP_WAIT;
    if (!access_destination_is_known(transaction))
        return STEP_WAIT;
    if (transaction->exchange->is_connection && transaction->settings->access_names_servers) {
        access->deferred = true;
        access_note_url(transaction);
        return admit_next(transaction, STEP_ACCESS);
    }
    return access_decide_now(transaction);
}
