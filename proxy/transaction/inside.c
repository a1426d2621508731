#include "transaction/inside.h"

#include "http/head_parser.h"
#include "intercept/interception.h"
#include "transaction/fail.h"
#include "transaction/transaction.h"

const struct intercepted_facts *inside_facts(const struct transaction *transaction) {
    const struct intercepted *intercepted =
        transaction->exchange != NULL ? transaction->exchange->ends->intercepted : NULL;
    return intercepted != NULL ? &intercepted->facts : NULL;
}

bool inside_has_page(const struct transaction *transaction) {
    const struct intercepted_facts *facts = inside_facts(transaction);
    return facts != NULL && facts->page_status != 0;
}

/* The page was written for the connection. So it closes behind the page, and the client's next
 * connection is judged anew. */
static enum step answer_by_service(struct transaction *transaction,
                                   const struct intercepted_facts *facts) {
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    if (http_head_parse_response(head, facts->page_head.base, facts->page_head.length, 0) <= 0)
        return fail_with(transaction, 502,
                         "an adaptation service sent an answer that can't be "
                         "used");
    delivery_set_page(transaction, RESULT_SERVICE, head, facts->page_body);
    delivery_close_connection(transaction);
    return STEP_DELIVER;
}

static enum step answer_by_redirection(struct transaction *transaction,
                                       const struct intercepted_facts *facts) {
    struct slice to = arena_slice(&transaction->arena, facts->page_location);
    delivery_redirect(transaction, facts->page_status, to);
    delivery_close_connection(transaction);
    return STEP_DELIVER;
}

enum step inside_answer(struct transaction *transaction) {
    const struct intercepted_facts *facts = inside_facts(transaction);
    request_own(transaction);
    if (facts->page_error.length == 0)
        return answer_by_service(transaction, facts);
    if (facts->page_location.length > 0)
        return answer_by_redirection(transaction, facts);
    const char *reason = arena_copy(&transaction->arena, facts->page_error);
    const char *name =
        facts->page_name.length > 0 ? arena_copy(&transaction->arena, facts->page_name) : NULL;
    enum step next = fail_page(transaction, facts->page_status, reason, name);
    delivery_close_connection(transaction);
    if (facts->page_status < 500)
        outcome_set_result(&transaction->outcome, RESULT_DENIED);
    return next;
}

bool inside_identity(const struct intercepted_facts *facts, const struct settings *settings,
                     struct server_identity_place *place) {
    bool is_address = address_parse_ip(&place->destination, facts->place, facts->port);
    place->key = (struct server_identity_key){
        .name = facts->name,
        .port = facts->port,
        .trust = settings->origin.trust.digest,
        .destination = is_address ? &place->destination : NULL,
    };
    return is_address || slice_equal(facts->place, facts->name);
}

void inside_forget_identity(struct transaction *transaction) {
    const struct intercepted_facts *facts = inside_facts(transaction);
    struct server_identity_place place;
    if (facts != NULL && inside_identity(facts, transaction->settings, &place))
        server_identity_forget(transaction->host->interception->identities, &place.key);
}

bool inside_is_for(const struct transaction *transaction, const struct url *url) {
    const struct intercepted *intercepted = transaction->exchange->ends->intercepted;
    return intercepted != NULL && url_is_https(url) &&
           intercepted_is_for(intercepted, url->host, url->port);
}
