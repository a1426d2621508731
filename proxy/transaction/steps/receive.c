#include "transaction/transaction.h"

#include "origin/scheme.h"
#include "transaction/fail.h"

/* RECEIVE: turns the request head into one absolute URL (RFC 9110 §7.1, RFC 9112 §3.2). */

static enum step receive_connect(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    struct url url;
    if (transaction->exchange->listen->mode != LISTEN_FORWARD)
        return fail_with(transaction, 405, "CONNECT is supported by forward proxies only");
    if (!url_parse_authority(&url, request->target, 0) || url.port == 0)
        return fail_with(transaction, 400, "the CONNECT target is not host:port");
    request_set_connect(transaction, &url);
    return STEP_ADMIT;
}

static enum step receive_absolute(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    struct url url;
    if (!url_parse(&url, request->target) || !request_set_url(transaction, &url))
        return fail_with(transaction, 400, "the request target is not a valid URL");
    if (!origin_can_fetch(transaction->request.url.scheme))
        return fail_with(transaction, 501,
                         "only http:// URLs can be fetched; for https:// "
                         "clients use CONNECT");
    if (request->method_id == HTTP_METHOD_OPTIONS && url.path_query.length == 0)
        request_set_for_server(transaction);
    return STEP_ADMIT;
}

static enum step receive_origin_form(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    const struct url_scheme *scheme = transaction->exchange->scheme;
    struct slice host = transaction->exchange->authority;
    struct url url;
    if (host.length == 0)
        return fail_with(transaction, 400, "the request names no host");
    if (!url_parse_authority(&url, host, scheme->port))
        return fail_with(transaction, 400, "the Host header is not host[:port]");
    if (!url_set_target(&url, scheme, request->target) || !request_set_url(transaction, &url))
        return fail_with(transaction, 400, "the request target is not a valid path");
    request_log_url(transaction);
    return STEP_ADMIT;
}

static enum step receive_target(struct transaction *transaction) {
    struct http_head *request = transaction->request.head;
    if (request->method_id == HTTP_METHOD_CONNECT)
        return receive_connect(transaction);
    if (request->target.length > 0 && request->target.base[0] == '/') {
        if (transaction->exchange->listen->mode == LISTEN_FORWARD)
            return fail_with(transaction, 400,
                             "this is a forward proxy: the request target "
                             "must be an absolute URL");
        return receive_origin_form(transaction);
    }
    if (slice_equal(request->target, SLICE("*")))
        return fail_with(transaction, 501, "OPTIONS * is not supported here");
    return receive_absolute(transaction);
}

enum step step_receive(struct transaction *transaction) {
    struct exchange *exchange = transaction->exchange;
    if (exchange->error_status != 0)
        return fail_with(transaction, exchange->error_status, exchange->error_text);
    if (exchange->listen == NULL)
        return fail_with(transaction, 503, "this listener has been removed by a reload");
    enum step next = receive_target(transaction);
    if (next == STEP_ADMIT)
        request_show_host(transaction, exchange->authority);
    return next;
}
