#include "transaction/bumped.h"

#include "transaction/transaction.h"

static const struct intercepted *connection_around(const struct transaction *transaction) {
    return transaction->exchange != NULL ? transaction->exchange->ends->intercepted : NULL;
}

const struct intercepted_facts *bumped_facts(const struct transaction *transaction) {
    const struct intercepted *intercepted = connection_around(transaction);
    return intercepted != NULL ? &intercepted->facts : NULL;
}

const struct bumped_class *bumped_class_of(const struct transaction *transaction) {
    const struct intercepted *intercepted = connection_around(transaction);
    return intercepted != NULL ? intercepted->class : NULL;
}

bool bumped_has_page(const struct transaction *transaction) {
    const struct intercepted_facts *facts = bumped_facts(transaction);
    return facts != NULL && facts->page_status != 0;
}

bool bumped_is_for(const struct transaction *transaction, const struct url *url) {
    const struct intercepted *intercepted = transaction->exchange->ends->intercepted;
    return intercepted != NULL && url_is_https(url) &&
           intercepted_is_for(intercepted, url->host, url->port);
}
