#include "client/exchange.h"

/* NULL: the listener speaks clear text. */
static struct tls_server *make_server(const struct listen_settings *listen,
                                      struct ticket_keys *tickets) {
    return listen->tls.set != NULL ? listen_tls_server(listen, tickets) : NULL;
}

struct listen_set *listen_set_new(struct settings *settings, struct ticket_keys *tickets) {
    struct listen_set *set;
    ALLOC_OBJ(set, LISTEN_SET_MAGIC);
    set->references = 1;
    set->settings = settings_reference(settings);
    set->servers = xcalloc(settings->listen_count + 1, sizeof *set->servers);
    for (size_t i = 0; i < settings->listen_count; i++)
        set->servers[i] = make_server(&settings->listens[i], tickets);
    return set;
}

void listen_set_free(struct listen_set *set) {
    CHECK_OBJ(set, LISTEN_SET_MAGIC);
    ASSERT(set->references == 0);
    for (size_t i = 0; i < set->settings->listen_count; i++)
        tls_server_release(&set->servers[i]);
    free(set->servers);
    settings_release(&set->settings);
    FREE_OBJ(set);
}

const struct listen_settings *listen_set_find(const struct listen_set *set,
                                              const struct address *address) {
    const struct settings *settings = set->settings;
    for (size_t i = 0; i < settings->listen_count; i++)
        if (address_equal(&settings->listens[i].address, address))
            return &settings->listens[i];
    return NULL;
}

struct tls_server *listen_set_server(const struct listen_set *set,
                                     const struct listen_settings *listen) {
    return listen != NULL ? set->servers[listen - set->settings->listens] : NULL;
}

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
