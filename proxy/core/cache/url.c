#include "cache/url.h"

#include "cache/key.h"
#include "http/url.h"

struct slice content_url(struct slice text, struct arena *arena) {
    struct url url;
    if (!url_parse(&url, text))
        return slice_make(NULL, 0);
    size_t capacity = text.length + 16;
    char *out = arena_alloc(arena, capacity);
    size_t length = url_normalise(&url, out, capacity);
    return slice_make(length > 0 ? out : NULL, length);
}

struct slice content_prefix(struct slice text, struct arena *arena) {
    const struct slice more = SLICE("x"); /* makes the last segment longer */
    struct url url;
    if (!url_parse(&url, text) || url.path_query.length == 0 ||
        memchr(text.base, '#', text.length) != NULL)
        return content_url(text, arena);
    struct slice normalised = content_url(arena_concat(arena, text, more), arena);
    if (normalised.base != NULL)
        normalised.length -= more.length;
    return normalised;
}

struct slice content_host(struct slice text, struct arena *arena) {
    struct url url;
    struct slice host = text;
    if (text.length > 0 && text.base[0] != '[' && memchr(text.base, ':', text.length) != NULL)
        host = arena_concat(arena, SLICE("["), host, SLICE("]"));
    if (!url_parse_authority(&url, host, 80) || url.port_given)
        return text;
    size_t room = url_room(&url);
    url_rewrite_authority(&url, arena_alloc(arena, room), room);
    return url.host;
}

struct cache_name content_name(struct slice url, const struct settings *settings,
                               struct arena *arena) {
    return cache_name_of(cache_url_by_settings(url, settings, NULL, arena));
}
