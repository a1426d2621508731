#include "transaction/steps/admit.h"

#include "transaction/fail.h"
#include "transaction/hops.h"
#include "transaction/https.h"
#include "transaction/steps/access.h"
#include "transaction/steps/destination.h"
#include "transaction/steps/intercept.h"
#include "transaction/steps/purge.h"
#include "transaction/steps/reqmod.h"
#include "transaction/transaction.h"
#include "transaction/waiting_page.h"

/* ADMIT: decides whether this client may make this request on this listener. */

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
    return request->method_id == HTTP_METHOD_PURGE || request->method_id == HTTP_METHOD_BAN ||
           (request->method_id == HTTP_METHOD_OTHER &&
            (slice_equal_nocase(request->method, SLICE("PURGE")) ||
             slice_equal_nocase(request->method, SLICE("BAN"))));
}

/* `done` is known where this is inlined. */
static inline __attribute__((always_inline)) enum step next_behind(struct transaction *transaction,
                                                                   enum step done) {
    const struct settings *settings = transaction->settings;
    if (settings->any_access && done < STEP_ACCESS && !access_passes(transaction))
        return STEP_ACCESS;
    if (settings->any_limit && done < STEP_LIMIT)
        return STEP_LIMIT;
    if (settings->access_purges && purge_is_meant(transaction->request.head))
        return STEP_PURGE;
    if (settings->any_patience && waiting_page_is_url(url_path(&transaction->request.url)))
        return waiting_page_collect(transaction);
    if (destination_is_wanted(transaction->exchange))
        return STEP_DESTINATION;
    if (intercept_is_wanted(transaction->request.kind, settings))
        return STEP_INTERCEPT;
    if (settings->any_rewrite || transaction->adapt->any[ADAPT_REQMOD_PRECACHE])
        return reqmod_or_lookup(transaction);
    return STEP_LOOKUP;
}

enum step admit_next(struct transaction *transaction, enum step done) {
    return next_behind(transaction, done);
}

enum step step_admit(struct transaction *transaction) {
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
        !(transaction->settings->access_purges && purge_is_meant(request)))
        return purge_refuse(transaction);
    if (https_is_elsewhere(transaction->exchange) && https_redirect(transaction) == STEP_DELIVER)
        return STEP_DELIVER;
    if (request->method_id == HTTP_METHOD_OPTIONS && http_head_has(request, HTTP_MAX_FORWARDS) &&
        !hops_count_down(transaction->request.head, &transaction->arena))
        return fail_with(transaction, 501,
                         "Max-Forwards ends at this proxy, and it does not answer OPTIONS");
    if (transaction->exchange->upgrade.length > 0)
        note_upgrade(transaction);
    return next_behind(transaction, STEP_ADMIT);
}
