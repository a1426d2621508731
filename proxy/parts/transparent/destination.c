#include "client/redirection.h"
#include "transaction/fail.h"
#include "transaction/transaction.h"
#include "transparent/connection.h"
#include "transparent/settings.h"

/* DESTINATION: compares the address that a client has connected to with those of the host that its
 * request names. */

struct looked_up {
    struct destination base;
    struct resolver_query query;
    struct transaction *transaction;
    bool asked;    /* the addresses of the host */
    bool resolved; /* query.result has them, or the error */
};

static struct looked_up *looked_up_of(const struct transaction *transaction) {
    return transaction->parts[PART_TRANSPARENT];
}

static struct redirection *redirection_of(const struct transaction *transaction) {
    return transaction->exchange->ends->redirection;
}

static void destination_on_resolved(struct resolver_query *query) {
    struct looked_up *looked_up = CONTAINER_OF(query, struct looked_up, query);
    looked_up->resolved = true;
    loop_defer(looked_up->transaction->net->loop, &looked_up->transaction->task);
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
static void destination_begin(struct transaction *transaction) {
    struct looked_up *looked_up = arena_zalloc(&transaction->arena, sizeof *looked_up);
    looked_up->base.host = arena_slice(&transaction->arena, transaction->request.url.host);
    looked_up->base.port = transaction->request.url.port;
    looked_up->transaction = transaction;
    resolver_query_init(&looked_up->query);
    looked_up->query.client = request_client(transaction);
    transaction->parts[PART_TRANSPARENT] = looked_up;
    transaction->destination = &looked_up->base;
}

/* Another port belongs to another server, even at the same address. */
static bool destination_look_up(struct transaction *transaction) {
    struct looked_up *looked_up = looked_up_of(transaction);
    struct destination *destination = &looked_up->base;
    struct redirection *redirection = redirection_of(transaction);
    if (destination->port != address_port(&redirection->destination))
        return true;
    destination->proven = was_proven(redirection, destination->host);
    if (destination->proven)
        return true;
    looked_up->asked = true;
    looked_up->resolved = resolver_lookup(transaction->net->resolver, destination->host,
                                          &looked_up->query, destination_on_resolved);
    return looked_up->resolved;
}

static enum step destination_judge(struct transaction *transaction) {
    struct looked_up *looked_up = looked_up_of(transaction);
    struct destination *destination = &looked_up->base;
    struct redirection *redirection = redirection_of(transaction);
    if (looked_up->asked)
        destination->proven = is_among(&redirection->destination, &looked_up->query.result);
    if (destination->proven) {
        remember_host(redirection, destination->host);
    } else {
        transaction->net->counters.transparent_mismatches++;
        const struct transparent_settings *mine = transaction->settings->parts[PART_TRANSPARENT];
        if (mine->mismatch == TRANSPARENT_MISMATCH_REFUSE)
            return fail_with(transaction, 421,
                             "the host of the request does not have the address that the client "
                             "has connected to (transparent.mismatch)");
    }
    return STEP_NEXT;
}

static enum step destination_run(struct transaction *transaction) {
    if (looked_up_of(transaction) == NULL) {
        destination_begin(transaction);
        if (!destination_look_up(transaction)) {
            request_own(transaction);
            return STEP_WAIT;
        }
    } else if (!looked_up_of(transaction)->resolved) {
        return STEP_WAIT;
    }
    return destination_judge(transaction);
}

static void destination_end(struct transaction *transaction) {
    if (looked_up_of(transaction) != NULL)
        resolver_cancel(&looked_up_of(transaction)->query);
}

static bool destination_is_wanted(struct transaction *transaction) {
    return destination_is_redirected(transaction->exchange);
}

const struct step_row destination_step = {
    .name = "DESTINATION",
    .step = STEP_DESTINATION,
    .run = destination_run,
    .is_needed = settings_are_transparent,
    .is_wanted = destination_is_wanted,
    .end = destination_end,
};
