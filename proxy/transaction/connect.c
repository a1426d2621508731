#include "transaction/transaction.h"

#include "base/assert.h"

/* TUNNEL: CONNECT reaches out to the origin; when the client has its 200, bytes flow both ways. */

static enum step opened(struct transaction *transaction, struct dial *dial) {
    struct exchange *exchange = transaction->exchange;
    transaction->status = 200;
    transaction->result = RESULT_TUNNEL;
    if (!exchange_interim(exchange, SLICE("HTTP/1.1 200 Connection established\r\n\r\n")))
        return STEP_LOG;
    struct net_buffer *leftover;
    struct connection *client = exchange_take_connection(exchange, &leftover);
    struct connection *origin = dial_take(dial, NULL, NULL);
    transaction->tunnel =
        tunnel_new(transaction->net, &client, &leftover, &origin,
                   transaction->settings->origin.read_timeout, &transaction->task);
    return transaction->tunnel->over ? STEP_LOG : STEP_WAIT;
}

static void start(struct transaction *transaction) {
    struct url *url = &transaction->url;
    transaction->reach = arena_alloc(&transaction->arena, sizeof *transaction->reach);
    transaction->origin_name = arena_slice(&transaction->arena, transaction->url_text);
    dial_start(transaction->reach, transaction->net, url->host, url->port,
               transaction->settings->origin.connect_timeout, &transaction->task);
}

enum step step_tunnel(struct transaction *transaction) {
    if (transaction->tunnel != NULL)
        return transaction->tunnel->over ? STEP_LOG : STEP_WAIT;
    if (transaction->exchange->state == EXCHANGE_ABORTED)
        return STEP_LOG;
    if (transaction->reach == NULL)
        start(transaction);
    switch (transaction->reach->state) {
    case DIAL_DONE: return opened(transaction, transaction->reach);
    case DIAL_FAILED:
        transaction->net->counters.origin_failures++;
        return transaction_fail(transaction, transaction->reach->timed_out ? 504 : 502,
                                transaction->reach->error);
    default: return STEP_WAIT;
    }
}
