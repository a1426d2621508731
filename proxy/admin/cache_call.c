#include "admin/cache_call.h"

#include "base/assert.h"
#include "cache/key.h"
#include "http/url.h"

#include <stdio.h>
#include <stdlib.h>

const char *cache_call_argument(const struct cache_call *call, const char *name) {
    const char *value = page_argument(call->request, name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool cache_call_is_set(const struct cache_call *call, const char *name) {
    const char *value = cache_call_argument(call, name);
    return value != NULL && strcmp(value, "no") != 0 && strcmp(value, "0") != 0;
}

bool cache_call_take_number(const struct cache_call *call, const char *name, uint64_t otherwise,
                            uint64_t most, uint64_t *number) {
    char reason[100];
    const char *text = cache_call_argument(call, name);
    *number = otherwise;
    if (text == NULL || (slice_to_uint64(slice_from(text), number) && *number <= most))
        return true;
    snprintf(reason, sizeof reason, "%s must be a number up to %llu", name,
             (unsigned long long)most);
    page_error(call->page, 400, reason);
    return false;
}

char *cache_call_normalised(const char *text, size_t *length) {
    struct url url;
    size_t capacity = strlen(text) + 16;
    char *out = xmalloc(capacity);
    *length = url_parse(&url, slice_from(text)) ? url_normalise(&url, out, capacity) : 0;
    if (*length > 0)
        return out;
    free(out);
    return NULL;
}

char *cache_call_normalised_prefix(const char *text, size_t *length) {
    static const char more[] = "x"; /* makes the last segment longer */
    struct url url;
    if (!url_parse(&url, slice_from(text)) || url.path_query.length == 0 ||
        strchr(text, '#') != NULL)
        return cache_call_normalised(text, length);
    char *longer = xmalloc(strlen(text) + sizeof more);
    sprintf(longer, "%s%s", text, more);
    char *normalised = cache_call_normalised(longer, length);
    free(longer);
    *length -= sizeof more - 1;
    return normalised;
}

struct slice cache_call_host(const struct cache_call *call, const char *text) {
    struct url url;
    struct slice host = slice_from(text);
    if (text != NULL && text[0] != '[' && strchr(text, ':') != NULL)
        host = arena_concat(call->arena, SLICE("["), host, SLICE("]"));
    if (!url_parse_authority(&url, host, 80) || url.port_given)
        return slice_from(text);
    size_t room = url_room(&url);
    url_rewrite_authority(&url, arena_alloc(call->arena, room), room);
    return url.host;
}

bool cache_call_take_url(const struct cache_call *call, char **url, size_t *length) {
    const char *text = cache_call_argument(call, "url");
    *url = text == NULL ? NULL : cache_call_normalised(text, length);
    if (*url == NULL)
        page_error(call->page, 400, "this is not a URL that can be stored: write http://HOST/PATH");
    return *url != NULL;
}

struct cache_name cache_call_name_of(const struct cache_call *call, struct slice url) {
    struct settings *settings = call->calls->settings(call->calls->context);
    url = cache_url_by_settings(arena_slice(call->arena, url), settings, NULL, call->arena);
    settings_release(&settings);
    return cache_name_of(url);
}

bool cache_call_take_name(const struct cache_call *call, struct cache_name *name) {
    char *url;
    size_t length;
    if (!cache_call_take_url(call, &url, &length))
        return false;
    *name = cache_call_name_of(call, slice_make(url, length));
    free(url);
    return true;
}

bool cache_call_take_stored(const struct cache_call *call, struct cache_name *name) {
    if (!cache_call_take_name(call, name))
        return false;
    disk_load_now(call->disk, name);
    return true;
}

void cache_call_keep_on_disk(const struct cache_call *call, const struct cache_name *name) {
    struct cache_walk walk = {0};
    if (disk_has_lost(call->disk)) /* an object that is not in memory must not return unchanged */
        disk_forget(call->disk, name);
    struct disk_moment since = disk_now(call->disk);
    cache_walk_name(call->cache, &walk, name);
    for (size_t i = 0; i < walk.count; i++)
        disk_store(call->disk, walk.objects[i], &since);
    cache_walk_end(&walk);
}

void cache_call_answer_count(const struct cache_call *call, const char *what, uint64_t count) {
    page_json(call->page, 200, json_pack("{s:I}", what, (json_int_t)count));
}

void cache_call_not_stored(const struct cache_call *call) {
    page_error(call->page, 404, "nothing is stored for this URL");
}

json_t *cache_call_text(struct slice text) {
    json_t *json = json_stringn(text.base == NULL ? "" : text.base, text.length);
    if (json != NULL)
        return json;
    char *copy = slice_dup(text);
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)copy[i] >= 0x80)
            copy[i] = '?';
    json = json_stringn(copy, text.length);
    free(copy);
    return json == NULL ? json_string("?") : json;
}
