#include "transaction/reverse_map.h"

#include "transaction/transaction.h"

/* Rewrites URLs in response headers that lead to the origin into the URLs that the client must
 * ask for: the map rule in reverse. The result is a path, which is right for any name and scheme
 * by which the client reaches the proxy. */

/* A URL that is equivalent to the origin of the rule. */
struct own_url {
    struct slice host;
    uint16_t port;
    struct slice scheme;
    struct slice base; /* path */
};

struct reference {
    bool has_authority;
    struct url url;    /* if it has one */
    struct slice rest; /* path, query and fragment as in the field */
};

/* The scheme of the URL that the origin was asked for. */
static struct slice asked_scheme(const struct transaction *transaction) {
    const struct map_settings *map = transaction->fetch.route->map;
    return map->origins != NULL ? transaction->fetch.server.scheme : map->origin.scheme;
}

/* Returns false when the URL leads to an unknown place: another scheme, or relative to the path
 * of the request. */
static bool read_reference(struct transaction *transaction, struct slice text,
                           struct reference *reference) {
    *reference = (struct reference){.rest = text};
    struct slice absolute = text;
    if (slice_starts_with(text, SLICE("//")))
        absolute = arena_printf(&transaction->arena, "%.*s:%.*s",
                                SLICE_PRINT(asked_scheme(transaction)), SLICE_PRINT(text));
    else if (slice_starts_with(text, SLICE("/")))
        return true;
    if (!url_parse(&reference->url, absolute))
        return false;
    reference->has_authority = true;
    size_t at = reference->url.scheme.length + 3;
    while (at < absolute.length && memchr("/?#", absolute.base[at], 3) == NULL)
        at++;
    reference->rest = slice_make(absolute.base + at, absolute.length - at);
    return true;
}

static struct slice without_slash(struct slice path) {
    if (path.length > 0 && path.base[path.length - 1] == '/')
        path.length--;
    return path;
}

/* Sets *below to the path below `base`. Returns false when the URL is not below it. */
static bool is_below(struct slice path, struct slice base, struct slice *below) {
    base = without_slash(base);
    if (!slice_starts_with(path, base))
        return false;
    *below = slice_make(path.base + base.length, path.length - base.length);
    return below->length == 0 || memchr("/?#", below->base[0], 3) != NULL;
}

static bool to_prefix(struct transaction *transaction, struct slice path, struct slice base,
                      struct slice *view) {
    struct slice prefix = slice_from(transaction->fetch.route->map->path), below;
    if (!is_below(path, base, &below))
        return false;
    if (below.length > 0 && below.base[0] == '/')
        prefix = without_slash(prefix);
    struct slice pieces[] = {prefix, below};
    *view = arena_join(&transaction->arena, pieces, 2);
    return true;
}

/* A path without a host, or with the client's own host. The origin may or may not know the
 * prefix, so the longer of both paths decides. */
static bool map_path(struct transaction *transaction, struct slice path, struct slice *view) {
    const struct map_settings *map = transaction->fetch.route->map;
    struct slice base = map->origin.path_query, prefix = slice_from(map->path), below;
    if (without_slash(base).length <= without_slash(prefix).length &&
        is_below(path, prefix, &below))
        return false;
    return to_prefix(transaction, path, base, view);
}

static bool map_own_url(struct transaction *transaction, const struct reference *reference,
                        const struct own_url *own, struct slice *view) {
    return slice_equal_nocase(own->scheme, reference->url.scheme) &&
           own->port == reference->url.port && slice_equal_nocase(own->host, reference->url.host) &&
           to_prefix(transaction, reference->rest, own->base, view);
}

static bool map_alias(struct transaction *transaction, const struct reference *reference,
                      const char *alias, struct slice *view) {
    struct url url;
    if (!url_parse(&url, slice_from(alias)))
        return false;
    const struct own_url own = {url.host, url.port, url.scheme, url.path_query};
    return map_own_url(transaction, reference, &own, view);
}

/* One that DNS has named for the group may know itself by that name. */
static bool map_asked_server(struct transaction *transaction, const struct reference *reference,
                             struct slice *view) {
    const struct url *server = &transaction->fetch.server;
    const struct own_url own = {server->host, server->port, server->scheme,
                                transaction->fetch.route->map->origin.path_query};
    return map_own_url(transaction, reference, &own, view);
}

static bool map_absolute(struct transaction *transaction, const struct reference *reference,
                         struct slice *view) {
    const struct map_settings *map = transaction->fetch.route->map;
    struct own_url own = {map->origin.host, map->origin.port, map->origin.scheme,
                          map->origin.path_query};
    for (size_t i = 0; map->origins != NULL && i < map->origins->server_count; i++) {
        const struct origin_server_settings *server = &map->origins->servers[i];
        own.host = server->srv ? slice_from(server->name) : server->url.host;
        own.port = server->url.port;
        own.scheme = server->url.scheme;
        if (map_own_url(transaction, reference, &own, view))
            return true;
    }
    if (map->origins != NULL && map_asked_server(transaction, reference, view))
        return true;
    if (map->origins == NULL && map_own_url(transaction, reference, &own, view))
        return true;
    for (char **alias = map->origin_aliases; alias != NULL && *alias != NULL; alias++)
        if (map_alias(transaction, reference, *alias, view))
            return true;
    /* With preserve_host the origin was called by this name. */
    return map->preserve_host &&
           slice_equal_nocase(reference->url.scheme, transaction->request.url.scheme) &&
           reference->url.port == transaction->request.url.port &&
           slice_equal_nocase(reference->url.host, transaction->request.url.host) &&
           map_path(transaction, reference->rest, view);
}

static bool map_reference(struct transaction *transaction, struct slice text, struct slice *view) {
    struct reference reference;
    if (!read_reference(transaction, text, &reference))
        return false;
    return reference.has_authority ? map_absolute(transaction, &reference, view)
                                   : map_path(transaction, text, view);
}

static void map_field(struct transaction *transaction, enum http_name id) {
    struct slice view, value = http_head_value(transaction->response.head, id);
    if (value.length > 0 && map_reference(transaction, value, &view))
        http_head_set(transaction->response.head, id, view);
}

/* "5; url=http://..." */
static void map_refresh(struct transaction *transaction) {
    static const char mark[] = "url=";
    const struct http_field *field =
        http_head_find_text(transaction->response.head, SLICE("Refresh"));
    struct slice view;
    if (field == NULL || field->value.length < sizeof mark)
        return;
    struct slice value = field->value;
    size_t at = 0, length = sizeof mark - 1;
    while (at + length <= value.length &&
           !slice_equal_nocase(slice_make(value.base + at, length), SLICE("url=")))
        at++;
    if (at + length > value.length)
        return;
    at += length;
    struct slice url = slice_trim(slice_make(value.base + at, value.length - at));
    if (url.length >= 2 && (url.base[0] == '"' || url.base[0] == '\'') &&
        url.base[url.length - 1] == url.base[0])
        url = slice_make(url.base + 1, url.length - 2);
    if (!map_reference(transaction, url, &view))
        return;
    struct slice pieces[] = {slice_make(value.base, at), view};
    value = arena_join(&transaction->arena, pieces, 2);
    http_head_remove_text(transaction->response.head, SLICE("Refresh"));
    http_head_add(transaction->response.head, SLICE("Refresh"), value);
}

void reverse_map_response(struct transaction *transaction) {
    const struct route *route = transaction->fetch.route;
    if (route == NULL || route->map == NULL || !route->map->rewrite_location)
        return;
    map_field(transaction, HTTP_LOCATION);
    map_field(transaction, HTTP_CONTENT_LOCATION);
    map_refresh(transaction);
}
