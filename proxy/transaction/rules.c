#include "transaction/transaction.h"

/* For which rules of the settings a transaction is. They are asked once, and again only when a
 * service has changed the request. */

static const uint64_t *transaction_rules_find(struct transaction *transaction) {
    const struct class_subject subject = {
        .method = transaction->request->method,
        .host = transaction->url.host,
        .url = transaction->url_text,
        .path = url_path(&transaction->url),
        .client = &transaction->exchange->client->address,
    };
    return rules_find(transaction->settings->rules, &subject, &transaction->arena);
}

const uint64_t *transaction_rules(struct transaction *transaction) {
    if (transaction->rules == NULL)
        transaction->rules =
            rules_glance(transaction->settings->rules, &transaction->url, transaction->url_text);
    if (transaction->rules == NULL)
        transaction->rules = transaction_rules_find(transaction);
    return transaction->rules;
}

const uint64_t *transaction_request_rules(struct transaction *transaction) {
    return rules_without_type(transaction->settings->rules, transaction_rules(transaction),
                              &transaction->arena);
}

const uint64_t *transaction_response_rules(struct transaction *transaction,
                                           const struct http_head *response) {
    return rules_with_type(transaction->settings->rules, transaction_rules(transaction),
                           http_head_value(response, HTTP_CONTENT_TYPE), &transaction->arena);
}
