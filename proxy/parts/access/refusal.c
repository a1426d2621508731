#include "access/refusal.h"

#include "access/destination.h"
#include "access/state.h"
#include "transaction/fail.h"
#include "transaction/variables.h"

static const char no_user[] =
    "this is for known users only, and a client on this connection can not be asked who it is";

static struct access_refusal access_refusal_of(struct transaction *transaction,
                                               const struct access_decision *decision) {
    const struct access_settings *section = decision->section;
    if (access_destination_is_nowhere(transaction) &&
        accesses_of(transaction->settings)->asks_destination)
        return (struct access_refusal){
            502, .reason = "the name of the host can't be resolved, and the access rules ask for "
                           "its address"};
    if (decision->unsure)
        return (struct access_refusal){
            403, .reason = "an expression of the access rules needs too much work for this URL"};
    if (section == NULL)
        return (struct access_refusal){403, .reason =
                                                "no access rule of this proxy allows this request"};
    if (section->action == ACCESS_ACTION_AUTHENTICATE)
        return (struct access_refusal){403, .reason = no_user};
    if (section->action == ACCESS_ACTION_REDIRECT)
        return (struct access_refusal){
            403, .reason = "the access rules of this proxy redirect this request, which a client "
                           "can't follow here"};
    return (struct access_refusal){section->status,
                                   "the access rules of this proxy do not allow this request",
                                   .page = section->page};
}

struct bumped_url {
    struct transaction *transaction;
    struct slice host;
};

static struct slice bumped_variable(void *arg, enum variable variable, struct slice field) {
    const struct bumped_url *inside = arg;
    struct transaction *transaction = inside->transaction;
    switch ((int)variable) {
    case VARIABLE_URL:
        return arena_concat(
            &transaction->arena, SLICE("https://"),
            request_write_authority(transaction, inside->host, transaction->request.url.port),
            SLICE("/"));
    case VARIABLE_SCHEME: return SLICE("https");
    case VARIABLE_HOST: return inside->host;
    case VARIABLE_PATH:
    case VARIABLE_PATH_QUERY: return SLICE("/");
    default: return transaction_variable(transaction, variable, field);
    }
}

/* Inside of a connection that is opened for it, a section's redirection can be followed. The variables about the
 * URL are about https://HOST/, since of a CONNECT no more is known. */
static void send_elsewhere(struct access_refusal *refusal, struct transaction *transaction,
                           const struct access_settings *section, struct slice host) {
    struct bumped_url inside = {transaction, host};
    if (section == NULL || section->action != ACCESS_ACTION_REDIRECT)
        return;
    refusal->status = section->status;
    refusal->location = text_template_write(section->to_template, bumped_variable, &inside,
                                            TEXT_URL, &transaction->arena);
}

static const struct access_refusal *keep_refusal(struct transaction *transaction,
                                                 const struct access_refusal *refusal) {
    struct access_refusal *kept = arena_alloc(&transaction->arena, sizeof *kept);
    *kept = *refusal;
    return kept;
}

enum step access_deny(struct transaction *transaction, const struct access_decision *decision) {
    struct access_refusal refusal = access_refusal_of(transaction, decision);
    const struct step_list *list = transaction->settings->steps;
    bool inside = step_is_listed(list, STEP_INTERCEPT) &&
                  list->rows[list->at[STEP_INTERCEPT]]->shows_refusal(transaction);
    if (inside)
        send_elsewhere(&refusal, transaction, decision->section, transaction->request.url.host);
    if (refusal.location.length > 0)
        transaction->net->counters.access_redirected++;
    else if (access_refusal_is_denial(&refusal))
        transaction->net->counters.client_denied++;
    if (inside) {
        access_state(transaction)->base.refusal = keep_refusal(transaction, &refusal);
        return STEP_INTERCEPT;
    }
    enum step next = fail_page(transaction, refusal.status, refusal.reason, refusal.page);
    if (access_refusal_is_denial(&refusal))
        outcome_set_result(&transaction->outcome, RESULT_DENIED);
    return next;
}

const struct access_refusal *access_refuse_name(struct transaction *transaction,
                                                const struct access_settings *section,
                                                struct slice name) {
    struct access_refusal refusal = {
        403, .reason = "the access rules of this proxy do not allow connections to this server"};
    transaction->net->counters.client_denied++;
    if (section != NULL && section->action == ACCESS_ACTION_DENY) {
        refusal.status = section->status;
        refusal.page = section->page;
    }
    send_elsewhere(&refusal, transaction, section, name);
    return keep_refusal(transaction, &refusal);
}
