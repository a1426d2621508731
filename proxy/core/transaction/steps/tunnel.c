#include "transaction/steps/tunnel.h"

#include "base/assert.h"
#include "client/clients.h"
#include "transaction/access.h"
#include "transaction/fail.h"
#include "transaction/forwarding.h"
#include "transaction/transaction.h"

/* TUNNEL: the client and the origin leave HTTP, and bytes flow in both directions. This happens
 * after a CONNECT, for which this step connects to the origin unless a parent proxy has done so,
 * or after an Upgrade that the origin has answered with 101. */

/* `protocol` is the protocol of an upgrade; empty: the answer to a CONNECT. */
static enum step open_tunnel(struct transaction *transaction, struct http_head *head,
                             struct slice protocol, struct duplex *origin) {
    outcome_set_result(&transaction->outcome, RESULT_TUNNEL);
    outcome_set_status(&transaction->outcome, head->status);
    struct net_buffer *read_before = NULL;
    access_answer_tunnel(transaction, head);
    struct duplex *client =
        transaction->early_tunnel != NULL
            ? transaction->early_tunnel->class->take_client(transaction, &read_before)
            : exchange_open_tunnel(transaction->exchange, head, protocol);
    if (client == NULL) {
        duplex_close(&origin);
        return STEP_LOG;
    }
    struct duplex *sides[2] = {client, origin};
    struct pace *const *limits = transaction->exchange->paces;
    struct pace *const paces[2] = {limits[PACE_UP], limits[PACE_DOWN]};
    transaction->tunnel.relay =
        relay_new(transaction->net, sides, read_before, paces,
                  transaction->settings->origin.tunnel_timeout, false, &transaction->task);
    return transaction->tunnel.relay->over ? STEP_LOG : STEP_WAIT;
}

static enum step answer_connect(struct transaction *transaction, struct duplex *origin) {
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    http_head_init(head);
    head->status = 200;
    head->reason = SLICE("Connection established");
    return open_tunnel(transaction, head, slice_make("", 0), origin);
}

/* The origin's answer to the upgrade goes to the client, because both now use that protocol. */
static enum step switch_protocols(struct transaction *transaction) {
    struct http_head *response = transaction->response.head;
    struct slice upgrade = http_head_value(response, HTTP_UPGRADE);
    http_head_remove_hop_by_hop(response);
    http_head_remove_framing(response);
    forwarding_add_via(transaction, response);
    return open_tunnel(transaction, response, upgrade,
                       origin_call_take_tunnel(transaction->fetch.call));
}

/* A parent proxy has opened the tunnel for us. */
static enum step open_by_parent(struct transaction *transaction) {
    return answer_connect(transaction, origin_call_take_tunnel(transaction->fetch.call));
}

static void connect_start(struct transaction *transaction) {
    struct url *url = &transaction->request.url;
    transaction->tunnel.dial = arena_alloc(&transaction->arena, sizeof *transaction->tunnel.dial);
    fetch_name_origin(transaction, arena_slice(&transaction->arena, transaction->request.url_text));
    const struct dial_target target = {
        .host = url->host,
        .port = url->port,
        .egress = route_egress(transaction),
        .permit = access_permit(transaction),
        .permit_arg = transaction,
        .timeout = transaction->settings->origin.connect_timeout,
        .from = route_source(transaction),
        .client = request_client(transaction),
    };
    dial_start(transaction->tunnel.dial, transaction->net, &target, &transaction->task);
}

static enum step reached(struct transaction *transaction) {
    if (transaction->fetch.slot != NULL)
        origin_slot_answered(transaction->fetch.slot, 200);
    struct connection *origin = dial_take(transaction->tunnel.dial, NULL, NULL);
    struct net_buffer *ahead = NULL;
    return answer_connect(transaction, connection_duplex_new(&origin, &ahead));
}

static enum step not_reached(struct transaction *transaction) {
    const struct dial *reach = transaction->tunnel.dial;
    if (reach->denied)
        return fail_destination_denied(transaction, reach->error);
    if (transaction->fetch.slot != NULL) {
        origin_slot_failed(transaction->fetch.slot, reach->error);
        origin_slot_leave(transaction->fetch.slot);
    }
    transaction->net->counters.origin_failures++;
    return fail_with(transaction, reach->timed_out ? 504 : 502, reach->error);
}

/* The client's connection ends with the tunnel. */
static enum step tunnel_over(struct transaction *transaction) {
    const struct relay *relay = transaction->tunnel.relay;
    if (!relay->over)
        return STEP_WAIT;
    clients_note_tunnel(transaction->exchange, relay->bytes[0], relay->bytes[1]);
    return STEP_LOG;
}

static enum step tunnel_run(struct transaction *transaction) {
    if (transaction->tunnel.relay != NULL)
        return tunnel_over(transaction);
    if (transaction->exchange->state == EXCHANGE_ABORTED)
        return STEP_LOG;
    if (transaction->request.kind != REQUEST_CONNECT)
        return switch_protocols(transaction);
    if (transaction->fetch.call != NULL)
        return open_by_parent(transaction);
    if (transaction->tunnel.dial == NULL)
        connect_start(transaction);
    switch (transaction->tunnel.dial->state) {
    case DIAL_DONE: return reached(transaction);
    case DIAL_FAILED: return not_reached(transaction);
    default: return STEP_WAIT;
    }
}

static void tunnel_end(struct transaction *transaction) {
    relay_free(&transaction->tunnel.relay);
    if (transaction->tunnel.dial != NULL)
        dial_cancel(transaction->tunnel.dial);
}

const struct step_row tunnel_step = {
    .name = "TUNNEL", .step = STEP_TUNNEL, .run = tunnel_run, .begins = true, .end = tunnel_end};
