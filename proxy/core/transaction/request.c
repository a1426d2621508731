#include "transaction/request.h"

#include "transaction/bumped.h"
#include "transaction/transaction.h"

void request_begin(struct transaction *transaction) {
    struct request *request = &transaction->request;
    request->head = &transaction->exchange->request;
    request->original_url = request->head->target;
    request->original_method = request->head->method;
}

void request_set_connect(struct transaction *transaction, const struct url *url) {
    struct request *request = &transaction->request;
    size_t capacity = url_room(url);
    char *text = arena_alloc(&transaction->arena, capacity);
    request->kind = REQUEST_CONNECT;
    request->url = *url;
    request->url_text = slice_make(text, url_rewrite_authority(&request->url, text, capacity));
    request->authority = request->url_text;
}

void request_set_upgrade(struct transaction *transaction, struct slice protocols) {
    transaction->request.kind = REQUEST_UPGRADE;
    transaction->request.upgrade = arena_slice(&transaction->arena, protocols);
}

void request_set_for_server(struct transaction *transaction) {
    transaction->request.kind = REQUEST_FOR_SERVER;
}

void request_log_url(struct transaction *transaction) {
    transaction->request.original_url = transaction->request.url_text;
}

void request_hide_user_info(struct transaction *transaction) {
    struct request *request = &transaction->request;
    struct slice target = request->head->target, user = url_user_info(target);
    if (user.length == 0)
        return;
    const char *behind = user.base + user.length;
    request->head->target = arena_concat(
        &transaction->arena, slice_make(target.base, (size_t)(user.base - target.base)),
        slice_make(behind, (size_t)(target.base + target.length - behind)));
    request->original_url = request->head->target;
}

void request_changed(struct transaction *transaction) {
    transaction->request.rules = NULL;
}

void request_set_user(struct transaction *transaction, const struct class_user *user) {
    transaction->request.user = user;
    if ((rules_ask(transaction->settings->rules) & (CLASS_ASKS_USER | CLASS_ASKS_GROUP)) != 0)
        transaction->request.rules = NULL;
}

void request_set_destinations(struct transaction *transaction, const struct address *addresses,
                              size_t count) {
    transaction->request.destinations = addresses;
    transaction->request.destination_count = count;
    if ((rules_ask(transaction->settings->rules) & CLASS_ASKS_DESTINATION) != 0)
        transaction->request.rules = NULL;
}

void request_shorten_url(struct transaction *transaction, struct slice shorter) {
    struct request *request = &transaction->request;
    size_t path_at = (size_t)(request->url.path_query.base - request->url_text.base);
    request->url_text = shorter;
    request->url.path_query = slice_make(shorter.base + path_at, shorter.length - path_at);
    request->rules = NULL;
}

void request_keep_credentials(struct transaction *transaction, const struct http_head *head) {
    const struct intercepted_facts *inside = bumped_facts(transaction);
    struct slice credentials = http_head_value(head, HTTP_PROXY_AUTHORIZATION);
    if (inside != NULL)
        credentials = arena_slice(&transaction->arena, inside->credentials);
    if (credentials.length > 0)
        transaction->request.credentials = credentials;
}

struct source *request_give_body(struct transaction *transaction) {
    struct source *body = transaction->request.body;
    transaction->request.body = NULL;
    return body;
}

void request_put_body(struct transaction *transaction, struct source **bodyp) {
    transaction->request.body = *bodyp;
    *bodyp = NULL;
}

void request_close_body(struct transaction *transaction) {
    source_close(&transaction->request.body);
}

void request_own(struct transaction *transaction) {
    const struct http_head *request = transaction->request.head;
    bool target_is_original = transaction->request.original_url.base == request->target.base;
    if (transaction->exchange->owned)
        return;
    exchange_own_request(transaction->exchange, &transaction->arena);
    if (target_is_original)
        transaction->request.original_url = request->target;
    transaction->request.original_method = request->method;
}

void request_take_body(struct transaction *transaction) {
    if (transaction->request.body_taken)
        return;
    transaction->request.body_taken = true;
    transaction->request.body = exchange_body(transaction->exchange);
}

bool request_write_url(struct transaction *transaction, const struct url *from, struct url *url,
                       struct slice *text, struct slice *authority) {
    *url = *from;
    size_t capacity = url_room(url);
    char *bytes = arena_alloc(&transaction->arena, capacity);
    size_t length = url_rewrite(url, bytes, capacity);
    if (length == 0)
        return false;
    *text = slice_make(bytes, length);
    const char *begin = bytes + url->scheme.length + 3;
    *authority = slice_make(begin, (size_t)(url->path_query.base - begin));
    return true;
}

void request_show_host(struct transaction *transaction, struct slice host) {
    if (host.length > 0 && !slice_equal(host, transaction->request.authority))
        http_head_set(transaction->request.head, HTTP_HOST, transaction->request.authority);
}

bool request_set_url(struct transaction *transaction, const struct url *url) {
    return request_write_url(transaction, url, &transaction->request.url,
                             &transaction->request.url_text, &transaction->request.authority);
}

struct slice request_write_authority(struct transaction *transaction, struct slice host,
                                     uint16_t port) {
    enum { MORE = 32 }; /* characters besides the host: "[]:65535" */
    char *text = arena_alloc(&transaction->arena, host.length + MORE), *at = text;
    bool v6 = memchr(host.base, ':', host.length) != NULL;
    if (v6)
        *at++ = '[';
    memcpy(at, host.base, host.length);
    at += host.length;
    if (v6)
        *at++ = ']';
    if (port > 0) {
        *at++ = ':';
        at = slice_put_number(at, port);
    }
    return slice_make(text, (size_t)(at - text));
}

const struct address *request_client(const struct transaction *transaction) {
    return exchange_client(transaction->exchange);
}

struct slice request_client_ip(struct transaction *transaction) {
    if (transaction->request.client_ip.base == NULL)
        transaction->request.client_ip =
            arena_slice(&transaction->arena, exchange_client_ip(transaction->exchange));
    return transaction->request.client_ip;
}

const struct http_head *request_as_get(struct transaction *transaction) {
    if (transaction->request.head->method_id == HTTP_METHOD_GET)
        return transaction->request.head;
    struct http_head *request = arena_alloc(&transaction->arena, sizeof *request);
    memcpy(request, transaction->request.head, sizeof *request);
    request->method_id = HTTP_METHOD_GET;
    request->method = http_method_text(HTTP_METHOD_GET);
    return request;
}

/* The directory of the request's path, with the slash. */
static struct slice request_directory(const struct transaction *transaction) {
    struct slice path = url_path(&transaction->request.url);
    const char *slash = path.length > 0 ? memrchr(path.base, '/', path.length) : NULL;
    return slash == NULL ? SLICE("/") : slice_make(path.base, (size_t)(slash + 1 - path.base));
}

/* Makes a reference absolute (RFC 3986 §5.2). Its dot segments are removed when it is
 * normalised. */
static struct slice request_make_absolute(struct transaction *transaction, struct slice reference) {
    struct arena *arena = &transaction->arena;
    struct slice scheme = transaction->request.url.scheme;
    struct url url;
    if (url_parse(&url, reference))
        return reference;
    if (slice_starts_with(reference, SLICE("//")))
        return arena_concat(arena, scheme, SLICE(":"), reference);
    struct slice before = slice_starts_with(reference, SLICE("/")) ? slice_make("", 0)
                                                                   : request_directory(transaction);
    return arena_concat(arena, scheme, SLICE("://"), transaction->request.authority, before,
                        reference);
}

struct slice request_resolve(struct transaction *transaction, struct slice reference) {
    struct url url;
    if (reference.length == 0)
        return slice_make("", 0);
    struct slice absolute = request_make_absolute(transaction, reference);
    size_t capacity = absolute.length + 16;
    char *text = arena_alloc(&transaction->arena, capacity);
    return slice_make(text, url_parse(&url, absolute) ? url_normalise(&url, text, capacity) : 0);
}
