#include "transaction/request_rules.h"

#include "transaction/transaction.h"

/* The rules of the settings that match a transaction. They are matched once, and again only when
 * a service has changed the request. */

static const uint64_t *request_rules_find(struct transaction *transaction) {
    const struct class_subject subject = {
        .method = transaction->request.head->method,
        .host = transaction->request.url.host,
        .url = transaction->request.url_text,
        .path = url_path(&transaction->request.url),
        .client = &transaction->exchange->ends->client,
    };
    return rules_find(transaction->settings->rules, &subject, &transaction->arena);
}

const uint64_t *request_rules(struct transaction *transaction) {
    if (transaction->request.rules == NULL)
        transaction->request.rules = rules_glance(
            transaction->settings->rules, &transaction->request.url, transaction->request.url_text);
    if (transaction->request.rules == NULL)
        transaction->request.rules = request_rules_find(transaction);
    return transaction->request.rules;
}

const uint64_t *request_rules_without_type(struct transaction *transaction) {
    return rules_without_type(transaction->settings->rules, request_rules(transaction),
                              &transaction->arena);
}

const uint64_t *request_rules_for_response(struct transaction *transaction,
                                           const struct http_head *response) {
    return rules_with_type(transaction->settings->rules, request_rules(transaction),
                           http_head_value(response, HTTP_CONTENT_TYPE), &transaction->arena);
}
