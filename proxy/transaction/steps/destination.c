#include "transaction/steps/destination.h"

#include "client/redirection.h"
#include "transaction/fail.h"
#include "transaction/inside.h"
#include "transaction/steps/reqmod.h"
#include "transaction/transaction.h"

/* DESTINATION: compares the address that a client has connected to with those of the host that its
 * request names. */

static struct redirection *redirection_of(const struct transaction *transaction) {
    return transaction->exchange->ends->redirection;
}

static void destination_on_resolved(struct resolver_query *query) {
    struct destination *destination = CONTAINER_OF(query, struct destination, query);
    destination->resolved = true;
    loop_defer(destination->transaction->net->loop, &destination->transaction->task);
}

static bool is_among(const struct address *address, const struct resolution *found) {
    for (unsigned i = 0; i < found->count; i++) {
        struct address one = found->addresses[i];
        address_unmap(&one);
        address_set_port(&one, address_port(address));
        if (address_equal(&one, address))
            return true;
    }
    return false;
}

/* The next requests on the connection need no look-up. */
static void remember_host(struct redirection *redirection, struct slice host) {
    if (host.length >= sizeof redirection->proven_host)
        return;
    memcpy(redirection->proven_host, host.base, host.length);
    redirection->proven_host[host.length] = '\0';
}

static bool was_proven(const struct redirection *redirection, struct slice host) {
    return slice_equal(slice_from(redirection->proven_host), host);
}

/* The URL and its port as they are now: services may change the request later. */
static struct destination *destination_begin(struct transaction *transaction) {
    struct destination *destination = arena_zalloc(&transaction->arena, sizeof *destination);
    destination->host = arena_slice(&transaction->arena, transaction->request.url.host);
    destination->port = transaction->request.url.port;
    destination->transaction = transaction;
    resolver_query_init(&destination->query);
    destination->query.client = request_client(transaction);
    return destination;
}

/* Another port belongs to another server, even at the same address. */
static bool destination_look_up(struct transaction *transaction) {
    struct destination *destination = transaction->destination;
    struct redirection *redirection = redirection_of(transaction);
    if (destination->port != address_port(&redirection->destination))
        return true;
    destination->proven = was_proven(redirection, destination->host);
    if (destination->proven)
        return true;
    destination->asked = true;
    destination->resolved = resolver_lookup(transaction->net->resolver, destination->host,
                                            &destination->query, destination_on_resolved);
    return destination->resolved;
}

static enum step destination_judge(struct transaction *transaction) {
    struct destination *destination = transaction->destination;
    struct redirection *redirection = redirection_of(transaction);
    if (destination->asked)
        destination->proven = is_among(&redirection->destination, &destination->query.result);
    if (destination->proven) {
        remember_host(redirection, destination->host);
    } else {
        transaction->net->counters.transparent_mismatches++;
        if (transaction->settings->transparent.mismatch == TRANSPARENT_MISMATCH_REFUSE)
            return fail_with(transaction, 421,
                             "the host of the request does not have the address that the client "
                             "has connected to (transparent.mismatch)");
    }
    return reqmod_or_lookup(transaction);
}

enum step step_destination(struct transaction *transaction) {
    if (transaction->destination == NULL) {
        transaction->destination = destination_begin(transaction);
        if (!destination_look_up(transaction)) {
            request_own(transaction);
            return STEP_WAIT;
        }
    } else if (!transaction->destination->resolved) {
        return STEP_WAIT;
    }
    return destination_judge(transaction);
}

static bool is_for_url(const struct destination *destination, const struct url *url) {
    return slice_equal(destination->host, url->host) && destination->port == url->port;
}

/* Inside an intercepted connection the certificate is the proof. If it is not verified, the name is
 * only what the client says. */
static bool is_unproven_inside(const struct transaction *transaction,
                               const struct intercepted_facts *facts) {
    return !transaction->settings->origin.trust.verify && !slice_equal(facts->place, facts->name) &&
           inside_is_for(transaction, &transaction->request.url);
}

bool destination_is_unproven(const struct transaction *transaction) {
    const struct intercepted_facts *facts = inside_facts(transaction);
    if (facts != NULL)
        return is_unproven_inside(transaction, facts);
    const struct destination *destination = transaction->destination;
    return destination != NULL && !destination->proven &&
           is_for_url(destination, &transaction->request.url);
}

const struct address *destination_of(const struct transaction *transaction, const struct url *url) {
    const struct destination *destination = transaction->destination;
    return destination != NULL && is_for_url(destination, url)
               ? &redirection_of(transaction)->destination
               : NULL;
}

void destination_end(struct transaction *transaction) {
    if (transaction->destination != NULL)
        resolver_cancel(&transaction->destination->query);
}
