#include "transaction/fail.h"

#include "base/assert.h"
#include "transaction/page.h"
#include "transaction/transaction.h"

/* Returns the name of the service that failed, or NULL. */
static const char *fail_service(const struct transaction *transaction) {
    const struct adapt_chain *chains[STEP_CHAINS];
    const char *failed = NULL;
    for (unsigned i = transaction_chains(transaction, chains); failed == NULL && i-- > 0;)
        failed = transaction->host->adapting->failed(chains[i]);
    return failed;
}

/* An origin that did not get a whole request is not to blame. */
static bool blames_origin(const struct transaction *transaction, unsigned status) {
    return status >= 502 && transaction->fetch.origin_name.length > 0 &&
           (transaction->fetch.call == NULL ||
            transaction->fetch.call->failure != ORIGIN_NO_REQUEST);
}

/* The reason, with the name of what failed. */
static struct slice write_sentence(struct transaction *transaction, unsigned status,
                                   const char *reason) {
    const char *service = fail_service(transaction);
    struct slice where = slice_make("", 0);
    const char *before = "";
    if (service != NULL) {
        before = "The adaptation service ";
        where = slice_from(service);
    } else if (blames_origin(transaction, status)) {
        before = "The origin ";
        where = transaction->fetch.origin_name;
    }
    return arena_concat(&transaction->arena, slice_from(before), where,
                        where.length > 0 ? SLICE(" failed: ") : SLICE(""), slice_from(reason));
}

/* Adds fields of that name to the error page, where there is one. */
static enum step make_failure(struct transaction *transaction, unsigned status, const char *reason,
                              const char *name, struct slice field, const struct slice *values,
                              size_t count) {
    struct slice sentence = write_sentence(transaction, status, reason);
    if (transaction->early_tunnel != NULL)
        return transaction->early_tunnel->class->fail(transaction, status, reason, sentence, name);
    request_own(transaction);
    /* An object that is being stored is good, and others may use it. */
    if (transaction->storing.object == NULL) {
        lookup_tell_followers(transaction, SHARED_FETCH_FAILED);
        lookup_forget(transaction);
    }
    const struct page_choice choice = {.status = status, .sentence = sentence, .name = name};
    struct http_head *head = page_reply(transaction, &choice);
    if (status == 405)
        http_head_add(head, SLICE("Allow"), SLICE("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"));
    if (status == 400 || status == 408 || status == 413 || status == 417 || status == 431 ||
        status == 501)
        delivery_close_connection(transaction);
    for (size_t i = 0; i < count; i++)
        http_head_add(head, field, values[i]);
    outcome_set_error(&transaction->outcome, reason);
    return STEP_DELIVER;
}

enum step fail_with(struct transaction *transaction, unsigned status, const char *reason) {
    return make_failure(transaction, status, reason, NULL, slice_make("", 0), NULL, 0);
}

enum step fail_page(struct transaction *transaction, unsigned status, const char *reason,
                    const char *name) {
    return make_failure(transaction, status, reason, name, slice_make("", 0), NULL, 0);
}

enum step fail_challenge(struct transaction *transaction, unsigned status, const char *reason,
                         const struct slice *challenges, size_t count) {
    struct slice field = status == 407 ? SLICE("Proxy-Authenticate") : SLICE("WWW-Authenticate");
    enum step next = make_failure(transaction, status, reason, NULL, field, challenges, count);
    outcome_set_result(&transaction->outcome, RESULT_DENIED);
    return next;
}

enum step fail_later(struct transaction *transaction, unsigned status, const char *reason,
                     unsigned seconds) {
    struct slice value = arena_printf(&transaction->arena, "%u", seconds);
    enum step next =
        make_failure(transaction, status, reason, NULL, SLICE("Retry-After"), &value, 1);
    outcome_set_result(&transaction->outcome, RESULT_DENIED);
    return next;
}

enum step fail_denied(struct transaction *transaction, const char *reason) {
    transaction->net->counters.client_denied++;
    enum step next = fail_with(transaction, 403, reason);
    outcome_set_result(&transaction->outcome, RESULT_DENIED);
    return next;
}

enum step fail_destination_denied(struct transaction *transaction, const char *reason) {
    transaction->net->counters.destinations_denied++;
    return fail_denied(transaction, reason);
}

enum step fail_to_change(struct transaction *transaction) {
    transaction->net->counters.field_rules_failures++;
    return fail_with(transaction, 431,
                     "the request can't be changed as the request_headers sections want it: it has "
                     "too many fields, "
                     "or a value that is too long or too hard to search");
}
