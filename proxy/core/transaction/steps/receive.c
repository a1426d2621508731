#include "transaction/transaction.h"

#include "base/assert.h"
#include "client/redirection.h"
#include "origin/call.h"
#include "transaction/access.h"
#include "transaction/bumped.h"
#include "transaction/destination.h"
#include "transaction/fail.h"
#include "transaction/forwarding.h"
#include "transaction/hops.h"
#include "transaction/https.h"
#include "transaction/internal.h"

/* RECEIVE: turns the request head into one absolute URL (RFC 9110 §7.1, RFC 9112 §3.2). */

/* Is the request for the server that the client has connected to, as far as the client knows? */
static bool is_redirected(const struct transaction *transaction) {
    return destination_is_redirected(transaction->exchange);
}

static enum step receive_connect(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    struct url url;
    if (exchange_is_intercepted(transaction->exchange) ||
        (!transaction->exchange->is_connection &&
         (transaction->exchange->listen->mode != LISTEN_FORWARD || is_redirected(transaction))))
        return fail_with(transaction, 405, "CONNECT is supported by forward proxies only");
    if (!url_parse_authority(&url, request->target, 0) || url.port == 0)
        return fail_with(transaction, 400, "the CONNECT target is not host:port");
    request_set_connect(transaction, &url);
    return STEP_NEXT;
}

/* A server that the client has connected to itself gets one name from it. */
static bool agrees_with_host(const struct transaction *transaction, const struct url *url) {
    struct slice host = transaction->exchange->authority;
    struct url named;
    if (!slice_equal_nocase(url->scheme, SLICE("http")))
        return false;
    return host.length == 0 ||
           (url_parse_authority(&named, host, url->port) &&
            slice_equal_nocase(named.host, url->host) && named.port == url->port);
}

/* A WebSocket is asked for by "an absolute http/https URI" (RFC 6455 §4.1), through a proxy mostly by
 * CONNECT. */
static enum step refuse_scheme(struct transaction *transaction, struct slice scheme) {
    bool websocket =
        slice_equal_nocase(scheme, SLICE("ws")) || slice_equal_nocase(scheme, SLICE("wss"));
    return fail_with(transaction, 501,
                     websocket ? "only http:// and https:// URLs can be fetched; open a WebSocket "
                                 "with CONNECT, or with Upgrade and an http:// URL"
                               : "only http:// and https:// URLs can be fetched");
}

static enum step receive_absolute(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    struct slice scheme = url_scheme_of(request->target);
    struct url url;
    if (scheme.length > 0 && !origin_can_fetch(scheme))
        return refuse_scheme(transaction, scheme);
    if (!url_parse(&url, request->target) || !request_set_url(transaction, &url))
        return fail_with(transaction, 400, "the request target is not a valid URL");
    if (is_redirected(transaction) && !agrees_with_host(transaction, &url))
        return fail_with(transaction, 400,
                         "the request target names another server than the Host header, or another "
                         "scheme than http");
    if (request->method_id == HTTP_METHOD_OPTIONS && url.path_query.length == 0)
        request_set_for_server(transaction);
    return STEP_NEXT;
}

/* The port of the scheme, or in transparent mode that of the client's connection, since clients
 * may leave it out. */
static uint16_t port_without_host(const struct transaction *transaction) {
    return is_redirected(transaction) ? address_port(transaction->exchange->ends->destination)
                                      : transaction->exchange->scheme->port;
}

static enum step receive_origin_form(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    const struct url_scheme *scheme = exchange_is_intercepted(transaction->exchange)
                                          ? &url_schemes[URL_HTTPS]
                                          : transaction->exchange->scheme;
    struct slice host = transaction->exchange->authority;
    struct url url;
    if (host.length == 0)
        return fail_with(transaction, 400, "the request names no host");
    if (!url_parse_authority(&url, host, port_without_host(transaction)))
        return fail_with(transaction, 400, "the Host header is not host[:port]");
    if (!url_set_target(&url, scheme, request->target) || !request_set_url(transaction, &url))
        return fail_with(transaction, 400, "the request target is not a valid path");
    request_log_url(transaction);
    return STEP_NEXT;
}

/* A browser asks for the file that names the proxy before it knows the proxy. */
static enum step receive_pac(struct transaction *transaction) {
    struct url url;
    bool good = url_parse(&url, SLICE("http://retort.internal/proxy.pac")) &&
                request_set_url(transaction, &url);
    ASSERT(good);
    request_log_url(transaction);
    return STEP_NEXT;
}

static enum step receive_target(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    if (request->method_id == HTTP_METHOD_CONNECT)
        return receive_connect(transaction);
    if (request->target.length > 0 && request->target.base[0] == '/') {
        bool forward = transaction->exchange->listen->mode == LISTEN_FORWARD &&
                       !is_redirected(transaction) &&
                       !exchange_is_intercepted(transaction->exchange);
        if (forward && internal_has_pac(transaction->settings, request->target))
            return receive_pac(transaction);
        if (forward)
            return fail_with(transaction, 400,
                             "this is a forward proxy: the request target "
                             "must be an absolute URL");
        return receive_origin_form(transaction);
    }
    if (slice_equal(request->target, SLICE("*")))
        return fail_with(transaction, 501, "OPTIONS * is not supported here");
    return receive_absolute(transaction);
}

/* RFC 9110 §15.5.20. Nothing says who would answer for the other host. */
static enum step refuse_misdirected(struct transaction *transaction) {
    transaction->net->counters.intercept_misdirected++;
    return fail_with(transaction, 421,
                     "this connection is for another host: open a new connection for this request");
}

static enum step receive_request(struct transaction *transaction) {
    struct exchange *exchange = transaction->exchange;
    if (exchange->error_status != 0)
        return fail_with(transaction, exchange->error_status, exchange->error_text);
    const struct redirection *redirection = exchange->ends->redirection;
    if (exchange->listen == NULL ||
        (redirection != NULL && exchange->listen->mode != LISTEN_TRANSPARENT))
        return fail_with(transaction, 503, "this listener has been removed by a reload");
    if (redirection != NULL && redirection->status == 403)
        return fail_denied(transaction, redirection->reason);
    if (redirection != NULL && redirection->status != 0)
        return fail_with(transaction, redirection->status, redirection->reason);
    hops_end(&exchange->request);
    if (exchange->listen->reads_forwarding)
        forwarding_receive(transaction);
    if (https_is_expected(exchange))
        return fail_with(transaction, 400,
                         "this port speaks HTTPS, and the request came in clear text: write "
                         "https:// in place of http://");
    enum step next = receive_target(transaction);
    if (next == STEP_NEXT && exchange_is_intercepted(exchange) && bumped_has_page(transaction))
        return bumped_class_of(transaction)->answer(transaction);
    if (next == STEP_NEXT && exchange_is_intercepted(exchange) &&
        !bumped_is_for(transaction, &transaction->request.url))
        return refuse_misdirected(transaction);
    if (next == STEP_NEXT)
        request_show_host(transaction, exchange->authority);
    return next;
}

static enum step receive_run(struct transaction *transaction) {
    if (exchange_is_intercepted(transaction->exchange))
        access_take_connection(transaction);
    enum step next = receive_request(transaction);
    if (transaction->request.url_text.length == 0)
        request_hide_user_info(transaction);
    return next;
}

const struct step_row receive_step = {.name = "RECEIVE", .step = STEP_RECEIVE, .run = receive_run};
