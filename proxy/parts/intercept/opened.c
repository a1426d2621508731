#include "http/head_parser.h"
#include "intercept/bump.h"
#include "transaction/bumped.h"
#include "transaction/fail.h"
#include "transaction/transaction.h"

/* Requests inside a connection that BUMP has opened. */

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

static enum step answer_inside(struct transaction *transaction) {
    const struct intercepted_facts *facts = bumped_facts(transaction);
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

const struct bumped_class opened_class = {
    .answer = answer_inside,
    .origin_failed = origin_proof_forget,
};
