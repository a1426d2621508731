#include "transaction/route.h"

#include "base/assert.h"
#include "cache/key.h"
#include "http/dot_segments.h"
#include "net/resolver.h"
#include "origin/security.h"
#include "transaction/bumped.h"
#include "transaction/destination.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"

#include <xxhash.h>

/* The URL that the origin is asked for. */
static const struct url *url_of(const struct transaction *transaction) {
    return transaction->outgoing != NULL ? &transaction->outgoing->url : &transaction->request.url;
}

static struct slice route_host_of(const struct transaction *transaction) {
    return transaction->outgoing != NULL ? transaction->outgoing->authority
                                         : transaction->request.authority;
}

static void set_group(const struct transaction *transaction, struct route *route,
                      const struct origins_settings *origins) {
    const struct settings *settings = transaction->settings;
    if (origins == NULL)
        return;
    route->origins = origins;
    route->group = transaction->snapshot->origins->list[origins - settings->origins_groups];
}

static const struct parent_settings *find_parent(struct transaction *transaction) {
    const struct settings *settings = transaction->settings;
    if (settings->parent_count == 0)
        return NULL;
    size_t at =
        settings_next_rule(settings, RULE_PARENT, request_rules_without_type(transaction), 0);
    return at < settings->parent_count ? &settings->parents[at] : NULL;
}

const struct parent_settings *route_parent(struct transaction *transaction) {
    const struct parent_settings *parent = find_parent(transaction);
    return parent != NULL && parent->direct != PARENT_DIRECT_ALWAYS ? parent : NULL;
}

/* A single origin with a limit of connections is a group of one server. */
static void route_set_place(struct transaction *transaction, struct route *route,
                            const struct url *origin) {
    if (transaction->settings->origin.max_connections == 0)
        return;
    route->place =
        origin_host_enter(transaction->host->origin_hosts, origin, transaction->settings);
    if (route->place != NULL)
        route->group = route->place->group;
}

static void find_for_forward(struct transaction *transaction, struct route *route) {
    const struct parent_settings *parent = route_parent(transaction);
    if (parent == NULL) {
        route_set_place(transaction, route, url_of(transaction));
        return;
    }
    set_group(transaction, route, parent->origins);
    route->by_parent = true;
    route->may_go_directly = parent->direct == PARENT_DIRECT_FALLBACK;
}

static bool ends_with_slash(struct slice text) {
    return text.length > 0 && text.base[text.length - 1] == '/';
}

/* The origin's path replaces the prefix of the rule, with one slash between it and the rest
 * unless the rest is only a query. A slash after a prefix that ends with a slash is kept;
 * otherwise the origin would be asked for another path than the one that classes were matched
 * with. */
static struct slice mapped_target(struct transaction *transaction, const struct map_settings *map) {
    struct slice base = map->origin.path_query, rest = url_of(transaction)->path_query;
    struct slice prefix = slice_from(map->path);
    rest = slice_make(rest.base + prefix.length, rest.length - prefix.length);
    bool separated = rest.length > 0 && rest.base[0] == '/' && !ends_with_slash(prefix);
    if (base.length == 0)
        base = SLICE("/");
    if (separated && base.length == 1)
        return rest;
    if (separated && ends_with_slash(base))
        rest = slice_make(rest.base + 1, rest.length - 1);
    bool joins = !separated && !ends_with_slash(base) && rest.length > 0 && rest.base[0] != '?';
    return arena_concat(&transaction->arena, base, joins ? SLICE("/") : SLICE(""), rest);
}

struct route *route_find(struct transaction *transaction) {
    struct route *route = arena_zalloc(&transaction->arena, sizeof *route);
    if (transaction->exchange->listen->mode != LISTEN_REVERSE) {
        find_for_forward(transaction, route);
        return route;
    }
    route->map = settings_find_map(transaction->settings, route_host_of(transaction),
                                   url_of(transaction)->path_query);
    if (route->map == NULL)
        return NULL;
    route->target = mapped_target(transaction, route->map);
    route->by_parent = route->map->parents != NULL;
    set_group(transaction, route, route->by_parent ? route->map->parents : route->map->origins);
    if (route->group == NULL)
        route_set_place(transaction, route, &route->map->origin);
    return route;
}

enum egress route_client_egress(const struct transaction *transaction) {
    return transaction->exchange->listen->local_destinations == LOCAL_ALLOW ? EGRESS_OTHERS
                                                                            : EGRESS_REMOTE;
}

enum egress route_egress(const struct transaction *transaction) {
    const struct route *route = transaction->fetch.route;
    if (route->map == NULL && !route_goes_to_parent(route))
        return route_client_egress(transaction);
    return route->origins != NULL ? transaction->fetch.slot->member->egress : EGRESS_ANY;
}

const struct address *route_source(struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    const struct route *route = transaction->fetch.route; /* NULL: not sought yet */
    if (!transaction->settings->sockets.spoof_client ||
        exchange->listen->mode != LISTEN_TRANSPARENT || exchange->ends->rewritten ||
        (route != NULL && route_goes_to_parent(route)))
        return NULL;
    struct address *source = arena_alloc(&transaction->arena, sizeof *source);
    *source = exchange->ends->client;
    return source;
}

const char *route_parent_denial(const struct transaction *transaction) {
    const struct url *url = url_of(transaction);
    enum egress egress = route_client_egress(transaction);
    struct resolution named;
    if (!resolver_knows(transaction->net->resolver, url->host, &named))
        return NULL;
    for (unsigned i = 0; i < named.count; i++) {
        address_set_port(&named.addresses[i], url->port);
        if (!egress_allows(transaction->net, egress, &named.addresses[i]))
            return egress_error(egress);
    }
    return NULL;
}

const char *route_denial(const struct transaction *transaction) {
    const struct route *route = transaction->fetch.route;
    return route->map == NULL && route->by_parent ? route_parent_denial(transaction) : NULL;
}

/* The destination without a parent, and the path there. */

static struct slice authority_of(struct transaction *transaction, const struct url *url) {
    bool is_default = url_has_default_port(url);
    return is_default && !url->host_is_ipv6
               ? url->host
               : request_write_authority(transaction, url->host, is_default ? 0 : url->port);
}

/* A server resolves ".." before it opens a file, so it could leave the mapped path. */
bool route_stays_below_map(const struct transaction *transaction) {
    const struct route *route = transaction->fetch.route;
    const struct url target = {.path_query = route->target};
    return route->map == NULL || !dot_segments_may_be_seen(url_path(&target));
}

static void aim_at(const struct transaction *transaction, struct aim *aim, const struct url *url) {
    aim->host = aim->name = url->host;
    aim->port = url->port;
    aim->trust = url_is_https(url) ? &transaction->settings->origin.trust : NULL;
    aim->protocols = origin_protocols_of(transaction->settings->origin.http2, aim->trust != NULL);
}

/* The server of a group that the slot is at. */
static void aim_at_member(struct aim *aim, const struct origin_member *member,
                          const struct origins_settings *origins) {
    aim->host = member->url.host;
    aim->port = member->url.port;
    aim->name = member->named.host;
    aim->trust = url_is_https(&member->url) ? &origins->trust : NULL;
    aim->protocols = origin_protocols_of(origins->http2, aim->trust != NULL);
}

static void aim_by_map(struct transaction *transaction, struct aim *aim) {
    const struct map_settings *map = transaction->fetch.route->map;
    const struct origin_member *member =
        map->origins != NULL ? transaction->fetch.slot->member : NULL;
    const struct url *origin = member != NULL ? &member->named : &map->origin;
    if (member != NULL)
        aim_at_member(aim, member, map->origins);
    else
        aim_at(transaction, aim, origin);
    aim->target = transaction->fetch.route->target;
    aim->host_header =
        map->preserve_host ? route_host_of(transaction) : authority_of(transaction, origin);
}

/* Unless a service has set the path since then. */
static bool is_for_whole_server(const struct transaction *transaction) {
    return transaction->request.kind == REQUEST_FOR_SERVER &&
           transaction->request.head->method_id == HTTP_METHOD_OPTIONS &&
           slice_equal(url_of(transaction)->path_query, SLICE("/"));
}

/* In transparent mode the request goes where the client has connected to. */
static void aim_at_destination(struct transaction *transaction, struct aim *aim) {
    const struct address *address = destination_of(transaction, url_of(transaction));
    if (address == NULL)
        return;
    char *text = arena_alloc(&transaction->arena, ADDRESS_IP_TEXT);
    aim->host = slice_make(text, address_format_ip(address, text));
    aim->port = address_port(address);
}

static void aim_by_url(struct transaction *transaction, struct aim *aim) {
    aim_at(transaction, aim, url_of(transaction));
    aim_at_destination(transaction, aim);
    /* Inside an intercepted connection the server is where the client has connected to. */
    if (bumped_is_for(transaction, url_of(transaction)))
        aim->host = bumped_facts(transaction)->place;
    aim->target = transaction->request.kind == REQUEST_CONNECT ? route_host_of(transaction)
                                                               : url_of(transaction)->path_query;
    if (is_for_whole_server(transaction))
        aim->target =
            route_asks_parent(transaction, transaction->fetch.route) ? SLICE("") : SLICE("*");
    aim->host_header = route_host_of(transaction);
}

bool route_tunnels(const struct transaction *transaction) {
    const struct route *route = transaction->fetch.route;
    const struct url *origin = route->map != NULL ? &route->map->origin : url_of(transaction);
    return route_goes_to_parent(route) && transaction->request.kind != REQUEST_CONNECT &&
           url_is_https(origin);
}

void route_aim_through(struct transaction *transaction, struct aim *aim,
                       const struct origin_member *parent, const struct origins_settings *parents) {
    aim->tunnel = request_write_authority(transaction, aim->host, aim->port);
    aim->tunnel_trust = url_is_https(&parent->url) ? &parents->trust : NULL;
    aim->tunnel_name = parent->named.host;
    aim->host = parent->url.host;
    aim->port = parent->url.port;
}

/* A proxy gets the whole URL (RFC 9112 §3.2.2). It contains the origin's host, whatever Host
 * says. */
static void turn_to_parent(struct transaction *transaction, struct aim *aim) {
    struct arena *arena = &transaction->arena;
    const struct map_settings *map = transaction->fetch.route->map;
    if (transaction->request.kind != REQUEST_CONNECT) {
        struct slice authority =
            map != NULL ? authority_of(transaction, &map->origin) : route_host_of(transaction);
        struct slice scheme = map != NULL ? map->origin.scheme : url_of(transaction)->scheme;
        aim->target = arena_concat(arena, scheme, SLICE("://"), authority, aim->target);
        aim->host_header = authority;
    }
    aim_at_member(aim, transaction->fetch.slot->member, transaction->fetch.route->origins);
    aim->protocols = ORIGIN_HTTP1;
}

void route_aim(struct transaction *transaction, struct aim *aim) {
    if (transaction->fetch.route->map != NULL)
        aim_by_map(transaction, aim);
    else
        aim_by_url(transaction, aim);
    if (route_tunnels(transaction))
        route_aim_through(transaction, aim, transaction->fetch.slot->member,
                          transaction->fetch.route->origins);
    else if (route_goes_to_parent(transaction->fetch.route))
        turn_to_parent(transaction, aim);
}

struct slice route_pool_key(struct transaction *transaction, enum egress egress, struct slice place,
                            const struct aim *aim, bool spoofs) {
    struct slice key = place;
    if (aim->trust != NULL || aim->protocols != ORIGIN_HTTP1)
        key = origin_security_key(
            arena_alloc(&transaction->arena, place.length + aim->name.length + ORIGIN_KEY_MORE),
            place, aim->name, aim->trust, aim->protocols);
    if (egress == EGRESS_ANY)
        return key; /* as health checks name it too */
    return arena_concat(&transaction->arena, key, slice_from(egress_mark(egress)),
                        spoofs ? SLICE(" from ") : SLICE(""),
                        spoofs ? request_client_ip(transaction) : SLICE(""));
}

/* All proxies with the same servers choose alike, so the hash has no secret. A client that
 * computes URLs with the same hash only chooses a server, which it can also do by trying. */
static uint64_t route_hash_text(struct slice text) {
    return XXH3_64bits(text.base, text.length);
}

uint64_t route_hash(struct transaction *transaction) {
    const struct url *url = &transaction->request.url;
    const struct origins_settings *origins = transaction->fetch.route->origins;
    if (origins == NULL || origins->rules.balance != ORIGINS_CONSISTENT_HASH)
        return 0;
    switch (origins->rules.hash_by) {
    case ORIGINS_HASH_HOST: return route_hash_text(url->host);
    case ORIGINS_HASH_CLIENT: return route_hash_text(request_client_ip(transaction));
    case ORIGINS_HASH_URL: break;
    }
    if (transaction->request.kind == REQUEST_CONNECT)
        return route_hash_text(transaction->request.authority);
    struct slice reduced = cache_url_by_policy(transaction->request.url_text,
                                               transaction->caching.policy, &transaction->arena);
    return XXH3_128bits(reduced.base, reduced.length).low64;
}
