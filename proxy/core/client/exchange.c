#include "client/exchange.h"

void exchange_set_client(struct exchange *exchange, const struct address *client,
                         struct exchange_behind *behind) {
    behind->address = *client;
    behind->ip_length = (uint8_t)address_format_ip(client, behind->ip);
    exchange->behind = behind;
}

struct slice exchange_client_ip(struct exchange *exchange) {
    return exchange->behind == NULL ? exchange_peer_ip(exchange)
                                    : slice_make(exchange->behind->ip, exchange->behind->ip_length);
}

struct slice exchange_peer_ip(struct exchange *exchange) {
    struct exchange_ends *ends = exchange->ends;
    if (ends->ip_length == 0)
        ends->ip_length = (uint8_t)address_format_ip(&ends->client, ends->ip);
    return slice_make(ends->ip, ends->ip_length);
}

void exchange_own_request(struct exchange *exchange, struct arena *arena) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    if (exchange->owned)
        return;
    exchange->owned = true;
    char *copy = arena_alloc(arena, http_head_size(&exchange->request));
    http_head_copy(&exchange->request, &exchange->request, copy);
    if (exchange->authority.length > 0)
        exchange->authority = arena_slice(arena, exchange->authority);
    if (exchange->upgrade.length > 0)
        exchange->upgrade = arena_slice(arena, exchange->upgrade);
}
