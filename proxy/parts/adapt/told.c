#include "adapt/told.h"

#include "adapt/chain.h"
#include "transaction/disclosed_identity.h"
#include "transaction/transaction.h"

bool told_who_asks(struct transaction *transaction, const struct adapt_chain *chain, bool by_who) {
    bool rule = (chain->told & CLIENT_FIELD_ACCESS_RULE) != 0;
    return chain->modified &&
           (by_who || client_fields_tell_user(chain->told, &chain->message->client) ||
            disclosed_identity_is_in(transaction, false, rule));
}

bool told_tells_service(struct transaction *transaction, const struct adapter *service) {
    unsigned fields = service->class->client_fields(service);
    return ((fields & CLIENT_FIELDS_OF_USER) != 0 &&
            disclosed_identity_is_somebody_named(transaction)) ||
           disclosed_identity_is_in(transaction, false, (fields & CLIENT_FIELD_ACCESS_RULE) != 0);
}
