#include "transaction/forwarding.h"

#include "transaction/hops.h"
#include "transaction/https.h"
#include "transaction/transaction.h"

static const struct forwarding_settings *
forwarding_settings_of(const struct transaction *transaction) {
    return &transaction->settings->forwarding;
}

static struct forwarded_trust forwarding_trust(const struct exchange *exchange) {
    const struct listen_settings *listen = exchange->listen;
    return (struct forwarded_trust){listen->client_from, listen->trusted_proxies,
                                    listen->trusted_proxy_count};
}

bool forwarding_peer_is_trusted(const struct exchange *exchange) {
    if (exchange->listen == NULL || exchange->listen->trusted_proxy_count == 0 ||
        exchange_is_intercepted(exchange))
        return false;
    const struct forwarded_trust trust = forwarding_trust(exchange);
    return forwarded_is_trusted(&trust, &exchange->ends->client);
}

static const struct slice other_names[] = {
    {"X-Forwarded-Port", sizeof "X-Forwarded-Port" - 1},
    {"X-Real-IP", sizeof "X-Real-IP" - 1},
};

static void drop_untrusted(struct http_head *request) {
    http_head_remove(request, HTTP_X_FORWARDED_FOR);
    http_head_remove(request, HTTP_FORWARDED);
    http_head_remove(request, HTTP_X_FORWARDED_PROTO);
    http_head_remove(request, HTTP_X_FORWARDED_HOST);
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        http_head_remove_text(request, other_names[i]);
}

void forwarding_receive(struct transaction *transaction) {
    struct exchange *exchange = transaction->exchange;
    struct address client;
    if (exchange->background || exchange->of_service) /* it has the client that it is for */
        return;
    if (!forwarding_peer_is_trusted(exchange)) {
        if (forwarding_settings_of(transaction)->untrusted == FORWARDING_DROP)
            drop_untrusted(&exchange->request);
        return;
    }
    const struct forwarded_trust trust = forwarding_trust(exchange);
    if (forwarded_client(&exchange->request, &trust, &exchange->ends->client, &client))
        exchange_set_client(exchange, &client,
                            arena_alloc(&transaction->arena, sizeof(struct exchange_behind)));
}

/* The value that a list gets with one more element. */
static struct slice forwarding_value(struct transaction *transaction, const struct http_head *head,
                                     enum http_name id, enum forwarding_mode mode,
                                     struct slice element) {
    struct arena *arena = &transaction->arena;
    struct slice before =
        mode == FORWARDING_APPEND ? http_head_joined_value(head, id, arena) : SLICE("");
    return arena_concat(arena, before, before.length > 0 ? SLICE(", ") : SLICE(""), element);
}

static void tell_x_forwarded_for(struct transaction *transaction, struct http_head *head) {
    enum forwarding_mode mode = forwarding_settings_of(transaction)->x_forwarded_for;
    struct slice ip = mode == FORWARDING_REPLACE ? request_client_ip(transaction)
                                                 : exchange_peer_ip(transaction->exchange);
    if (mode == FORWARDING_DELETE)
        http_head_remove(head, HTTP_X_FORWARDED_FOR);
    else if (mode != FORWARDING_OFF)
        http_head_set(head, HTTP_X_FORWARDED_FOR,
                      forwarding_value(transaction, head, HTTP_X_FORWARDED_FOR, mode, ip));
}

static struct slice scheme_of_client(const struct transaction *transaction) {
    return transaction->exchange->ends->tls != NULL ? SLICE("https") : SLICE("http");
}

static void tell_forwarded(struct transaction *transaction, struct http_head *head) {
    enum forwarding_mode mode = forwarding_settings_of(transaction)->forwarded;
    char element[FORWARDED_ELEMENT];
    if (mode == FORWARDING_DELETE)
        http_head_remove(head, HTTP_FORWARDED);
    if (mode == FORWARDING_DELETE || mode == FORWARDING_OFF)
        return;
    const struct address *client = mode == FORWARDING_REPLACE
                                       ? request_client(transaction)
                                       : &transaction->exchange->ends->client;
    struct slice written =
        slice_make(element, forwarded_write(element, client, scheme_of_client(transaction)));
    http_head_set(head, HTTP_FORWARDED,
                  forwarding_value(transaction, head, HTTP_FORWARDED, mode, written));
}

/* What a trusted proxy in front has said stays: it has seen the client. */
static void tell_unless_told(struct transaction *transaction, struct http_head *head,
                             enum http_name name, struct slice value) {
    if (!http_head_has(head, name) || !forwarding_peer_is_trusted(transaction->exchange))
        http_head_set(head, name, value);
}

static void tell_of_url(struct transaction *transaction, struct http_head *head) {
    const struct forwarding_settings *settings = forwarding_settings_of(transaction);
    if (transaction->exchange->listen == NULL ||
        transaction->exchange->listen->mode != LISTEN_REVERSE)
        return;
    if (settings->x_forwarded_proto)
        tell_unless_told(transaction, head, HTTP_X_FORWARDED_PROTO, scheme_of_client(transaction));
    if (settings->x_forwarded_host)
        tell_unless_told(transaction, head, HTTP_X_FORWARDED_HOST,
                         transaction->exchange->authority);
}

void forwarding_tell_origin(struct transaction *transaction, struct http_head *head) {
    if (forwarding_settings_of(transaction)->via)
        hops_add(head, transaction->exchange->version, slice_from(transaction->settings->name),
                 &transaction->arena);
    tell_x_forwarded_for(transaction, head);
    tell_forwarded(transaction, head);
    tell_of_url(transaction, head);
    https_tell_origin(transaction, head);
}

void forwarding_add_via(struct transaction *transaction, struct http_head *response) {
    struct slice version = transaction->fetch.version;
    if (forwarding_settings_of(transaction)->via)
        hops_add(response, version.length > 0 ? version : SLICE("1.1"),
                 slice_from(transaction->settings->name), &transaction->arena);
}
