#include "intercept/origin_proof.h"

#include "intercept/intercept.h"
#include "origin/security.h"
#include "tls/client.h"
#include "transaction/access.h"
#include "transaction/bumped.h"
#include "transaction/next_hop.h"
#include "transaction/route.h"

#include <stdio.h>

static struct slice origin_proof_keep(const struct origin_proof *proof, const char *text) {
    return arena_slice(&proof->transaction->arena, slice_from(text));
}

static enum origin_proof_state origin_proof_blame(struct origin_proof *proof, unsigned status,
                                                  const char *reason, struct slice sentence) {
    proof->status = status;
    proof->reason = reason;
    proof->sentence = sentence;
    return ORIGIN_PROOF_FAILED;
}

/* Where the identity of the origin behind a connection is remembered. */
struct server_identity_place {
    struct server_identity_key key;
    struct address destination; /* what the key points to */
};

/* False: the identity is not remembered, because the client connects to one host and asks for
 * another. */
static bool origin_proof_place(const struct intercepted_facts *facts,
                               const struct settings *settings,
                               struct server_identity_place *place) {
    bool is_address = address_parse_ip(&place->destination, facts->place, facts->port);
    place->key = (struct server_identity_key){
        .name = facts->name,
        .port = facts->port,
        .trust = settings->origin.trust.digest,
        .destination = is_address ? &place->destination : NULL,
    };
    return is_address || slice_equal(facts->place, facts->name);
}

/* The server as FETCH will ask it for the requests inside. */
static struct aim origin_proof_aim(const struct origin_proof *proof) {
    const struct intercepted_facts *facts = proof->facts;
    return (struct aim){
        .host = facts->place,
        .port = facts->port,
        .name = facts->name,
        .trust = &proof->transaction->settings->origin.trust,
        .protocols = origin_protocols_of(proof->transaction->settings->origin.http2, true),
    };
}

static void leave_parent(struct origin_proof *proof) {
    if (proof->slot != NULL)
        origin_slot_close(proof->slot);
    proof->slot = NULL;
    tls_client_release(&proof->parent_tls);
}

/* Goes through a tunnel of the parent proxy that the slot is at, if there is one. */
static enum origin_proof_state dial_origin(struct origin_proof *proof) {
    struct transaction *transaction = proof->transaction;
    const struct settings *settings = transaction->settings;
    struct aim aim = origin_proof_aim(proof);
    struct slice place = request_write_authority(transaction, aim.host, aim.port);
    struct dial_target target = {
        .egress =
            proof->slot != NULL ? proof->slot->member->egress : route_client_egress(transaction),
        .timeout = settings->origin.connect_timeout,
        .from = proof->slot != NULL ? NULL : route_source(transaction),
        .permit = proof->slot != NULL ? NULL : access_permit(transaction),
        .permit_arg = transaction,
        .client = request_client(transaction),
    };
    proof->state = ORIGIN_PROOF_CHECKING;
    if (proof->slot != NULL) {
        const struct origins_settings *parents = proof->parent->origins;
        route_aim_through(transaction, &aim, proof->slot->member, parents);
        place = next_hop_tunnel(transaction, &aim, parents, &target.proxy);
        target.preface = next_hop_preface(transaction, parents);
        proof->parent_tls = target.proxy.tls != NULL ? tls_client_take(target.proxy.tls) : NULL;
    }
    proof->key = route_pool_key(transaction, target.egress, place, &aim, target.from != NULL);
    proof->origin = tls_client_take(origin_securities_find(
        transaction->host->origin_securities, proof->key, aim.name, aim.trust, aim.protocols));
    target.host = aim.host;
    target.port = aim.port;
    target.tls = proof->origin;
    dial_start(&proof->dial, transaction->net, &target, &transaction->task);
    return proof->state;
}

static enum origin_proof_state no_parent(struct origin_proof *proof) {
    struct transaction *transaction = proof->transaction;
    static const char reason[] =
        "none of the parent proxies that lead to the origin could be asked";
    server_identity_turn_end(&proof->turn);
    transaction->net->counters.origin_failures++;
    return origin_proof_blame(proof, 503, reason, slice_from(reason));
}

/* Asks the parents one after the other. */
static enum origin_proof_state take_parent(struct origin_proof *proof) {
    proof->state = ORIGIN_PROOF_QUEUED;
    switch (origin_slot_take(proof->slot)) {
    case ORIGIN_SLOT_TAKEN: return dial_origin(proof);
    case ORIGIN_SLOT_WAITING: return proof->state;
    default: break;
    }
    leave_parent(proof);
    return proof->parent->direct == PARENT_DIRECT_FALLBACK ? dial_origin(proof) : no_parent(proof);
}

static enum origin_proof_state join_parents(struct origin_proof *proof) {
    struct transaction *transaction = proof->transaction;
    size_t index = (size_t)(proof->parent->origins - transaction->settings->origins_groups);
    const struct origin_slot_needs needs = {
        .repeatable = true,
        .only_up = proof->parent->direct == PARENT_DIRECT_FALLBACK,
        .any_status = true,
        .deadline = TIMER_NEVER,
    };
    const char *denial = route_parent_denial(transaction);
    if (denial != NULL) {
        server_identity_turn_end(&proof->turn);
        transaction->net->counters.destinations_denied++;
        return origin_proof_blame(proof, 403, denial, slice_from(denial));
    }
    proof->slot = arena_alloc(&transaction->arena, sizeof *proof->slot);
    origin_slot_init(proof->slot, transaction->snapshot->origins->list[index], transaction->net,
                     transaction->host->mailbox, &transaction->task, &needs);
    return take_parent(proof);
}

static enum origin_proof_state start_checking(struct origin_proof *proof) {
    struct transaction *transaction = proof->transaction;
    transaction->net->counters.intercept_identity_misses++;
    proof->parent = route_parent(transaction);
    return proof->parent != NULL ? join_parents(proof) : dial_origin(proof);
}

/* Remembers how the verification has ended, for the next connections to that origin. */
static void note_identity(const struct origin_proof *proof, enum server_identity_state state,
                          const char *issuer, const char *reason) {
    struct transaction *transaction = proof->transaction;
    struct interception *interception = interception_of(transaction);
    const struct interception_settings *settings = intercept_settings(transaction);
    uint64_t lifetime =
        state == SERVER_IDENTITY_GOOD ? settings->identity_time : settings->failure_time;
    struct server_identity identity = {.state = state, .not_after = proof->not_after};
    struct server_identity_place place;
    if (!origin_proof_place(proof->facts, transaction->settings, &place))
        return;
    snprintf(identity.issuer, sizeof identity.issuer, "%s", issuer);
    snprintf(identity.reason, sizeof identity.reason, "%s", reason);
    server_identity_note(interception->identities, &place.key, &identity, (time_t)(lifetime / 1000),
                         loop_seconds(transaction->net->loop));
}

static enum origin_proof_state origin_verified(struct origin_proof *proof) {
    struct transaction *transaction = proof->transaction;
    struct connection *origin = dial_take(&proof->dial, NULL, NULL);
    const struct tls_facts *facts = connection_tls_facts(origin);
    proof->not_after = facts->not_after;
    proof->issuer = origin_proof_keep(proof, facts->issuer);
    proof->verification = origin_proof_keep(proof, facts->verified);
    note_identity(proof, SERVER_IDENTITY_GOOD, facts->issuer, "");
    const struct settings *settings = transaction->settings;
    origin_pool_give(transaction->host->origins, proof->key, origin_proof_aim(proof).protocols,
                     &origin, settings->origin.idle_timeout, settings->origin.max_idle);
    return ORIGIN_PROOF_GOOD;
}

static struct slice blame_origin(const struct origin_proof *proof, const char *reason) {
    struct transaction *transaction = proof->transaction;
    return arena_concat(&transaction->arena, SLICE("The origin "), intercept_of(transaction)->place,
                        SLICE(" failed: "), slice_from(reason));
}

/* The origin's certificate can't be trusted, or its TLS fails. */
static enum origin_proof_state origin_untrusted(struct origin_proof *proof, const char *reason) {
    struct transaction *transaction = proof->transaction;
    transaction->net->counters.intercept_untrusted++;
    proof->refusable = intercept_settings(transaction)->mirror_errors;
    proof->verification = slice_from(reason);
    return origin_proof_blame(proof, 502, reason, blame_origin(proof, reason));
}

static enum origin_proof_state origin_failed(struct origin_proof *proof) {
    struct transaction *transaction = proof->transaction;
    const char *reason = arena_copy(&transaction->arena, slice_from(proof->dial.error));
    transaction->net->counters.origin_failures++;
    if (proof->dial.denied) {
        transaction->net->counters.destinations_denied++;
        return origin_proof_blame(proof, 403, reason, slice_from(reason));
    }
    bool is_origin = proof->dial.reached && (proof->dial.tunnel == NULL || proof->dial.tunnel_open);
    if (is_origin && !proof->dial.timed_out) {
        note_identity(proof, SERVER_IDENTITY_BAD, "", reason);
        return origin_untrusted(proof, reason);
    }
    server_identity_turn_end(&proof->turn);
    return origin_proof_blame(proof, proof->dial.timed_out ? 504 : 502, reason,
                              blame_origin(proof, reason));
}

/* The parent does not lead to the origin: another one may. */
static enum origin_proof_state leave_failed_parent(struct origin_proof *proof) {
    struct transaction *transaction = proof->transaction;
    transaction->net->counters.origin_srv_refused +=
        proof->dial.denied && egress_is_found(proof->slot->member->egress);
    origin_slot_failed(proof->slot, proof->dial.error);
    origin_slot_leave(proof->slot);
    dial_cancel(&proof->dial);
    tls_client_release(&proof->origin);
    tls_client_release(&proof->parent_tls);
    transaction->net->counters.origin_server_switches++;
    return take_parent(proof);
}

static enum origin_proof_state origin_proof_check(struct origin_proof *proof) {
    struct transaction *transaction = proof->transaction;
    if (proof->dial.state != DIAL_DONE && proof->dial.state != DIAL_FAILED)
        return proof->state;
    if (proof->slot != NULL && !proof->dial.proxy_answered)
        return leave_failed_parent(proof);
    if (proof->slot != NULL)
        origin_slot_answered(proof->slot, 200);
    leave_parent(proof);
    if (tls_client_was_asked(proof->origin) &&
        intercept_settings(transaction)->client_certificates) {
        server_identity_turn_end(&proof->turn);
        return ORIGIN_PROOF_ASKS_CERTIFICATE;
    }
    return proof->dial.state == DIAL_DONE ? origin_verified(proof) : origin_failed(proof);
}

/* Asks what is known of the origin. */
static enum origin_proof_state origin_proof_ask(struct origin_proof *proof) {
    struct transaction *transaction = proof->transaction;
    struct interception *interception = interception_of(transaction);
    struct server_identity_place place;
    struct server_identity identity;
    proof->state = ORIGIN_PROOF_ASKING;
    if (!origin_proof_place(proof->facts, transaction->settings, &place))
        return start_checking(proof);
    switch (server_identity_ask(interception->identities, &place.key,
                                loop_seconds(transaction->net->loop), &identity, &proof->turn,
                                transaction->host->mailbox, &transaction->task)) {
    case SERVER_IDENTITY_WAITING: return proof->state;
    case SERVER_IDENTITY_UNKNOWN: return start_checking(proof);
    case SERVER_IDENTITY_BAD:
        return origin_untrusted(proof, origin_proof_keep(proof, identity.reason).base);
    case SERVER_IDENTITY_GOOD: break;
    }
    transaction->net->counters.intercept_identity_hits++;
    proof->not_after = identity.not_after;
    proof->issuer = origin_proof_keep(proof, identity.issuer);
    proof->verification = SLICE("ok");
    return ORIGIN_PROOF_GOOD;
}

void origin_proof_begin(struct origin_proof *proof, struct transaction *transaction,
                        const struct intercepted_facts *facts) {
    proof->transaction = transaction;
    proof->facts = facts;
    proof->state = ORIGIN_PROOF_ASKING;
}

enum origin_proof_state origin_proof_go_on(struct origin_proof *proof) {
    switch (proof->state) {
    case ORIGIN_PROOF_ASKING: proof->state = origin_proof_ask(proof); break;
    case ORIGIN_PROOF_QUEUED: proof->state = take_parent(proof); break;
    case ORIGIN_PROOF_CHECKING: proof->state = origin_proof_check(proof); break;
    default: break;
    }
    return proof->state;
}

void origin_proof_forget(struct transaction *transaction) {
    const struct intercepted_facts *facts = bumped_facts(transaction);
    struct server_identity_place place;
    if (origin_proof_place(facts, transaction->settings, &place))
        server_identity_forget(interception_of(transaction)->identities, &place.key);
}

void origin_proof_end(struct origin_proof *proof) {
    if (proof->origin != NULL)
        dial_cancel(&proof->dial);
    tls_client_release(&proof->origin);
    leave_parent(proof);
    server_identity_turn_end(&proof->turn);
}
