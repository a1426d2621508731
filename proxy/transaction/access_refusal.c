#include "transaction/access_refusal.h"

#include "transaction/access_destination.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

static const char no_user[] =
    "this is for known users only, and a client on this connection can not be asked who it is";

struct access_refusal access_refusal_of(struct transaction *transaction,
                                        const struct access_decision *decision) {
    const struct access_settings *section = decision->section;
    if (access_destination_is_nowhere(transaction) &&
        transaction->settings->access_asks_destination)
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

struct inside_url {
    struct transaction *transaction;
    struct slice host;
};

static struct slice inside_variable(void *arg, enum variable variable, struct slice field) {
    const struct inside_url *inside = arg;
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

void access_refusal_send_elsewhere(struct access_refusal *refusal, struct transaction *transaction,
                                   const struct access_settings *section, struct slice host) {
    struct inside_url inside = {transaction, host};
    if (section == NULL || section->action != ACCESS_ACTION_REDIRECT)
        return;
    refusal->status = section->status;
    refusal->location = text_template_write(section->to_template, inside_variable, &inside,
                                            TEXT_URL, &transaction->arena);
}
