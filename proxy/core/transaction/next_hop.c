#include "transaction/next_hop.h"

#include "http/credentials.h"
#include "origin/security.h"
#include "part.h"
#include "transaction/access.h"
#include "transaction/transaction.h"

/* The parent's credentials are ours; those of clients are for us. */
static struct slice next_hop_connect(struct transaction *transaction, struct slice authority,
                                     const char *credentials) {
    struct arena *arena = &transaction->arena;
    char value[HTTP_CREDENTIALS_VALUE];
    struct slice basic = SLICE("");
    if (credentials != NULL)
        basic = arena_concat(arena, SLICE("Proxy-Authorization: "),
                             http_credentials_write(credentials, value), SLICE("\r\n"));
    return arena_concat(arena, SLICE("CONNECT "), authority, SLICE(" HTTP/1.1\r\nHost: "),
                        authority, SLICE("\r\n"), basic, SLICE("\r\n"));
}

/* Sets what the connection to the parent needs. Returns its key: clear text has the place. */
static struct slice set_parent(struct transaction *transaction, const struct aim *aim,
                               struct slice place, struct dial_proxy *proxy) {
    if (aim->tunnel_trust == NULL)
        return place;
    char *room =
        arena_alloc(&transaction->arena, place.length + aim->tunnel_name.length + ORIGIN_KEY_MORE);
    struct slice key =
        origin_security_key(room, place, aim->tunnel_name, aim->tunnel_trust, ORIGIN_HTTP1);
    proxy->tls = origin_securities_find(transaction->host->origin_securities, key, aim->tunnel_name,
                                        aim->tunnel_trust, ORIGIN_HTTP1);
    return key;
}

struct slice next_hop_tunnel(struct transaction *transaction, const struct aim *aim,
                             const struct origins_settings *parents, struct dial_proxy *proxy) {
    struct slice place = request_write_authority(transaction, aim->host, aim->port);
    proxy->head = next_hop_connect(transaction, aim->tunnel, parents->credentials);
    proxy->timeout = transaction->settings->origin.first_byte_timeout;
    return arena_concat(&transaction->arena, aim->tunnel, SLICE(" by "),
                        set_parent(transaction, aim, place, proxy));
}

struct slice next_hop_preface(struct transaction *transaction,
                              const struct origins_settings *origins) {
    if (origins == NULL || origins->proxy_protocol == PROXY_HEADER_OFF)
        return SLICE("");
    char *header = arena_alloc(&transaction->arena, PROXY_HEADER_WRITTEN);
    size_t length = 0;
    PARTS_FOR_EACH (number, proxy_protocol.write)
        length = part_table[number]->proxy_protocol.write(
            origins->proxy_protocol, request_client(transaction),
            transaction->exchange->ends->destination, header);
    return slice_make(header, length);
}

/* A connection that began with the name of a client is for requests of this client. */
static struct slice next_hop_keep_apart(struct transaction *transaction, struct slice key) {
    char client[ADDRESS_TEXT], destination[ADDRESS_TEXT];
    address_format(request_client(transaction), client);
    address_format(transaction->exchange->ends->destination, destination);
    return arena_concat(&transaction->arena, key, SLICE(" for "), slice_from(client), SLICE(" at "),
                        slice_from(destination));
}

struct slice next_hop_set(struct transaction *transaction, const struct aim *aim,
                          struct origin_request *request) {
    struct slice place = request_write_authority(transaction, aim->host, aim->port), keyed = place;
    request->host = aim->host;
    request->port = aim->port;
    request->protocols = aim->protocols;
    request->egress = route_egress(transaction);
    request->from = route_source(transaction);
    request->client = request_client(transaction);
    request->permit = egress_is_operators(request->egress) ? NULL : access_permit(transaction);
    request->permit_arg = transaction;
    if (aim->tunnel.length > 0)
        keyed =
            next_hop_tunnel(transaction, aim, transaction->fetch.route->origins, &request->proxy);
    request->pool_key =
        route_pool_key(transaction, request->egress, keyed, aim, request->from != NULL);
    if (aim->trust != NULL)
        request->security =
            origin_securities_find(transaction->host->origin_securities, request->pool_key,
                                   aim->name, aim->trust, aim->protocols);
    request->preface = next_hop_preface(transaction, transaction->fetch.route->origins);
    if (request->preface.length > 0)
        request->pool_key = next_hop_keep_apart(transaction, request->pool_key);
    return place;
}
