#include "transaction/destination.h"

#include "client/redirection.h"
#include "transaction/bumped.h"
#include "transaction/transaction.h"

static bool is_for_url(const struct destination *destination, const struct url *url) {
    return slice_equal(destination->host, url->host) && destination->port == url->port;
}

/* Inside an intercepted connection the certificate is the proof. If it is not verified, the name is
 * only what the client says. */
static bool is_unproven_inside(const struct transaction *transaction,
                               const struct intercepted_facts *facts) {
    return !transaction->settings->origin.trust.verify && !slice_equal(facts->place, facts->name) &&
           bumped_is_for(transaction, &transaction->request.url);
}

bool destination_is_unproven(const struct transaction *transaction) {
    const struct intercepted_facts *facts = bumped_facts(transaction);
    if (facts != NULL)
        return is_unproven_inside(transaction, facts);
    const struct destination *destination = transaction->destination;
    return destination != NULL && !destination->proven &&
           is_for_url(destination, &transaction->request.url);
}

const struct address *destination_of(const struct transaction *transaction, const struct url *url) {
    const struct destination *destination = transaction->destination;
    return destination != NULL && is_for_url(destination, url)
               ? &transaction->exchange->ends->redirection->destination
               : NULL;
}
