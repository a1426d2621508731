#include "transaction/steps/admit.h"

#include "transaction/fail.h"
#include "transaction/hops.h"
#include "transaction/https.h"
#include "transaction/transaction.h"

/* ADMIT: decides whether the request has a form that this listener serves. The access sections, which say
 * who may do what, stand in ACCESS; the limits in LIMIT. */

static bool client_allowed(const struct transaction *transaction) {
    const struct listen_settings *listen = transaction->exchange->listen;
    const struct address *client = request_client(transaction);
    for (size_t i = 0; i < listen->allow_count; i++)
        if (network_contains(&listen->allow[i], client))
            return true;
    return listen->allow_count == 0;
}

/* RFC 9110 §7.8: a request to continue in another protocol. Only WebSocket is allowed, because
 * requests after an upgrade to HTTP/2 would bypass all checks. */
static void note_upgrade(struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    if (transaction->request.head->method_id != HTTP_METHOD_GET || exchange->body_length != 0 ||
        !slice_equal_nocase(exchange->upgrade, SLICE("websocket")))
        return;
    request_set_upgrade(transaction, exchange->upgrade);
}

/* Methods that other caches take as an order to remove stored responses, from any client. An
 * origin that is a cache may obey because the order comes from this proxy. Methods are
 * case-sensitive, but such an origin may ignore case. */
static bool is_for_caches(const struct http_head *request) {
    return admit_is_purge(request) || (request->method_id == HTTP_METHOD_OTHER &&
                                       (slice_equal_nocase(request->method, SLICE("PURGE")) ||
                                        slice_equal_nocase(request->method, SLICE("BAN"))));
}

enum step admit_refuse_purge(struct transaction *transaction) {
    transaction->net->counters.client_purges_refused++;
    return fail_with(transaction, 405,
                     "PURGE and BAN are not supported: the operator of the proxy can remove stored "
                     "responses with retortctl cache purge or retortctl cache delete, or let "
                     "clients do it by an access section for a class with that method");
}

static enum step admit_run(struct transaction *transaction) {
    const struct http_head *request = transaction->request.head;
    if (!client_allowed(transaction))
        return fail_denied(transaction, "this client may not use this listener");
    if (transaction->request.kind == REQUEST_CONNECT && !transaction->exchange->is_connection &&
        !settings_connect_port_allowed(transaction->settings, transaction->request.url.port))
        return fail_denied(transaction, "CONNECT to this port is not allowed");
    if (http_head_has(request, HTTP_VIA) &&
        hops_contain(request, slice_from(transaction->settings->name)))
        return fail_with(transaction, 508,
                         "the request came back to this proxy: a forwarding loop");
    if (transaction->exchange->expects_unknown)
        return fail_with(transaction, 417, "the only supported value of Expect is 100-continue");
    if (request->method_id == HTTP_METHOD_TRACE)
        return fail_with(transaction, 405, "TRACE is not supported");
    if (is_for_caches(request) &&
        !(step_is_listed(transaction->settings->steps, STEP_PURGE) && admit_is_purge(request)))
        return admit_refuse_purge(transaction);
    if (https_is_elsewhere(transaction->exchange) && https_redirect(transaction) == STEP_DELIVER)
        return STEP_DELIVER;
    if (request->method_id == HTTP_METHOD_OPTIONS && http_head_has(request, HTTP_MAX_FORWARDS) &&
        !hops_count_down(transaction->request.head, &transaction->arena))
        return fail_with(transaction, 501,
                         "Max-Forwards ends at this proxy, and it does not answer OPTIONS");
    if (transaction->exchange->upgrade.length > 0)
        note_upgrade(transaction);
    return STEP_NEXT;
}

const struct step_row admit_step = {.name = "ADMIT", .step = STEP_ADMIT, .run = admit_run};
