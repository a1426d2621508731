#include "access/destination.h"

#include "access/state.h"
#include "client/redirection.h"
#include "net/resolver.h"

/* It is large, and few requests need one. */
struct access_search {
    struct transaction *transaction;
    struct slice host;
    struct resolver_query query;
};

static void access_on_resolved(struct resolver_query *query) {
    struct access_search *search = CONTAINER_OF(query, struct access_search, query);
    access_state(search->transaction)->resolved = true;
    loop_defer(search->transaction->net->loop, &search->transaction->task);
}

static void note_destinations(struct transaction *transaction) {
    const struct resolution *found = &access_state(transaction)->search->query.result;
    struct address *list = arena_alloc(&transaction->arena, (found->count + 1) * sizeof *list);
    for (unsigned i = 0; i < found->count; i++) {
        list[i] = found->addresses[i];
        address_unmap(&list[i]);
    }
    request_set_destinations(transaction, list, found->count);
}

/* True: the addresses are known at once. */
bool access_destination_resolve(struct transaction *transaction) {
    struct access_state *access = access_state(transaction);
    request_own(transaction);
    struct access_search *search = arena_alloc(&transaction->arena, sizeof *search);
    search->transaction = transaction;
    search->host = arena_slice(&transaction->arena, transaction->request.url.host);
    resolver_query_init(&search->query);
    search->query.client = request_client(transaction);
    access->search = search;
    access->resolving = true;
    access->resolved = resolver_lookup(transaction->net->resolver, search->host, &search->query,
                                       access_on_resolved);
    return access->resolved;
}

/* False: wait. */
bool access_destination_is_known(struct transaction *transaction) {
    struct access_state *access = access_state(transaction);
    if (!access->resolving)
        return true;
    if (!access->resolved)
        return false;
    access->resolving = false;
    note_destinations(transaction);
    return true;
}

/* A client of a transparent listener has chosen the address itself. */
void access_destination_take_redirection(struct transaction *transaction) {
    const struct redirection *redirection = transaction->exchange->ends->redirection;
    if (redirection == NULL)
        return;
    struct address *only = arena_alloc(&transaction->arena, sizeof *only);
    *only = redirection->destination;
    address_unmap(only);
    request_set_destinations(transaction, only, 1);
    access_state(transaction)->resolved = true;
}

bool access_is_elsewhere(const struct access_state *access, const struct url *url) {
    return !slice_equal(access->host, url->host) || access->port != url->port;
}

bool access_destination_is_nowhere(const struct transaction *transaction) {
    const struct access_search *search = access_state(transaction)->search;
    return search != NULL && search->query.result.count == 0;
}

void access_destination_end(struct transaction *transaction) {
    struct access_search *search = access_state(transaction)->search;
    if (search != NULL)
        resolver_cancel(&search->query);
}

/* The addresses are those of the host that the client has named. */
static void access_destination_forget(struct transaction *transaction) {
    struct access_state *access = access_state(transaction);
    access_destination_end(transaction);
    access->search = NULL;
    access->resolved = access->resolving = false;
    request_set_destinations(transaction, NULL, 0);
}

void access_destination_begin_again(struct transaction *transaction) {
    struct access_state *access = access_state(transaction);
    if (!access->rechecking && access_is_elsewhere(access, &transaction->request.url))
        access_destination_forget(transaction);
    access->rechecking = true;
}
