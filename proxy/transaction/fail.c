#include "transaction/fail.h"

#include "base/assert.h"
#include "transaction/steps/intercept.h"
#include "transaction/transaction.h"

/* Error pages. A page is short, names the reason, and says which host or service gave it. */

static const char page[] = "<!DOCTYPE html>\n"
                           "<html><head><title>%u %s</title></head>\n"
                           "<body><h1>%u %s</h1>\n"
                           "<p>%.*s.</p>\n"
                           "<p><small>%s, transaction %s</small></p>\n"
                           "</body></html>\n";

/* Returns the name of the service that failed, or NULL. */
static const char *fail_service(const struct transaction *transaction) {
    const struct adapt_chain *chains[ACCESS_CHAINS];
    for (unsigned i = transaction_chains(transaction, chains); i-- > 0;)
        if (chains[i]->state == ADAPT_FAILED)
            return chains[i]->failed_service;
    return NULL;
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

/* A reason may have words of others, such as names in a certificate. */
static struct slice fail_escape(struct transaction *transaction, struct slice text) {
    enum { LONGEST = sizeof "&quot;" - 1 };
    char *escaped = arena_alloc(&transaction->arena, text.length * LONGEST), *at = escaped;
    for (size_t i = 0; i < text.length; i++) {
        switch (text.base[i]) {
        case '&': at = slice_put(at, SLICE("&amp;")); break;
        case '<': at = slice_put(at, SLICE("&lt;")); break;
        case '>': at = slice_put(at, SLICE("&gt;")); break;
        case '"': at = slice_put(at, SLICE("&quot;")); break;
        default: *at++ = text.base[i];
        }
    }
    return slice_make(escaped, (size_t)(at - escaped));
}

static struct slice write_page(struct transaction *transaction, unsigned status,
                               struct slice sentence) {
    return arena_printf(&transaction->arena, page, status, http_reason(status), status,
                        http_reason(status), SLICE_PRINT(sentence), transaction->settings->name,
                        transaction_id(transaction));
}

enum step fail_with(struct transaction *transaction, unsigned status, const char *reason) {
    struct slice sentence = write_sentence(transaction, status, reason);
    if (transaction->intercept != NULL)
        return intercept_fail(transaction, status, reason, sentence);
    struct slice text = write_page(transaction, status, fail_escape(transaction, sentence));
    request_own(transaction);
    /* An object that is being stored is good, and others may use it. */
    if (transaction->storing.object == NULL) {
        lookup_tell_followers(transaction, SHARED_FETCH_FAILED);
        lookup_forget(transaction);
    }
    struct http_head *head = delivery_make_page(transaction, RESULT_ERROR, status, text);
    if (status == 405)
        http_head_add(head, SLICE("Allow"), SLICE("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"));
    if (status == 400 || status == 408 || status == 413 || status == 417 || status == 431 ||
        status == 501)
        delivery_close_connection(transaction);
    outcome_set_error(&transaction->outcome, reason);
    return STEP_DELIVER;
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
