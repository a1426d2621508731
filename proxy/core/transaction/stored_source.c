#include "transaction/stored_source.h"

#include "transaction/access.h"
#include "transaction/route.h"
#include "transaction/transaction.h"

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

struct object_source stored_source_of_response(const struct transaction *transaction) {
    struct object_source source = {{0}};
    const struct fetch *fetch = &transaction->fetch;
    if (access_permit(transaction) == NULL || fetch->call == NULL ||
        fetch->call->address.length == 0 || route_goes_to_parent(fetch->route) ||
        transaction->exchange->listen->mode == LISTEN_REVERSE)
        return source;
    struct address address = fetch->call->address;
    address_unmap(&address);
    if (address.any.sa_family == AF_INET) {
        memcpy(source.ip, mapped, sizeof mapped);
        memcpy(source.ip + sizeof mapped, &address.v4.sin_addr, 4);
    } else if (address.any.sa_family == AF_INET6) {
        memcpy(source.ip, &address.v6.sin6_addr, sizeof source.ip);
    }
    return source;
}

bool stored_source_is_same(const struct transaction *transaction, const struct object *object) {
    if (access_permit(transaction) == NULL)
        return true;
    struct object_source now = stored_source_of_response(transaction),
                         then = object_provenance(object).source;
    return object_source_equal(&now, &then);
}

bool stored_source_is_permitted(struct transaction *transaction, const struct object *object) {
    dial_permit_fn *permit = access_permit(transaction);
    if (permit == NULL)
        return true;
    struct object_source source = object_provenance(object).source;
    if (!object_source_is_known(&source))
        return true;
    struct address address = {.length = sizeof address.v6};
    address.v6.sin6_family = AF_INET6;
    memcpy(&address.v6.sin6_addr, source.ip, sizeof source.ip);
    address_set_port(&address, transaction->request.url.port);
    return permit(transaction, &address);
}
