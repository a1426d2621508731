#include "transaction/next_hop.h"

#include "http/credentials.h"
#include "origin/security.h"
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
        arena_alloc(&transaction->arena, place.length + aim->host.length + ORIGIN_KEY_MORE);
    struct slice key = origin_security_key(room, place, aim->host, aim->tunnel_trust);
    proxy->tls = origin_securities_find(transaction->host->origin_securities, key, aim->host,
                                        aim->tunnel_trust);
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

struct slice next_hop_set(struct transaction *transaction, const struct aim *aim,
                          struct origin_request *request) {
    struct slice place = request_write_authority(transaction, aim->host, aim->port), keyed = place;
    request->host = aim->host;
    request->port = aim->port;
    request->reach = route_reach(transaction);
    request->from = route_source(transaction);
    if (aim->tunnel.length > 0)
        keyed =
            next_hop_tunnel(transaction, aim, transaction->fetch.route->origins, &request->proxy);
    request->pool_key =
        route_pool_key(transaction, request->reach, keyed, aim, request->from != NULL);
    if (aim->trust != NULL)
        request->security = origin_securities_find(transaction->host->origin_securities,
                                                   request->pool_key, aim->name, aim->trust);
    return place;
}
