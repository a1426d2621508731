#include "admin/cache_call.h"

#include "base/assert.h"
#include "cache/stored.h"

#include <stdio.h>
#include <stdlib.h>

void cache_call_make(void (*make)(const struct cache_call *call), struct page *page,
                     const struct admin_calls *calls, const struct page_request *request) {
    struct arena arena;
    const struct cache_call call = {page,  calls, request, calls->cache, calls->second_level,
                                    &arena};
    if (calls->cache == NULL) {
        page_error(page, 404, "there is no cache");
        return;
    }
    arena_init(&arena);
    make(&call);
    arena_release(&arena);
}

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

bool cache_call_take_url(const struct cache_call *call, struct slice *url) {
    const char *text = cache_call_argument(call, "url");
    *url = text == NULL ? slice_make(NULL, 0) : content_url(slice_from(text), call->arena);
    if (url->base == NULL)
        page_error(call->page, 400, "this is not a URL that can be stored: write http://HOST/PATH");
    return url->base != NULL;
}

struct cache_name cache_call_name_of(const struct cache_call *call, struct slice url) {
    struct settings *settings = call->calls->settings(call->calls->context);
    struct cache_name name = content_name(url, settings, call->arena);
    settings_release(&settings);
    return name;
}

bool cache_call_take_name(const struct cache_call *call, struct cache_name *name) {
    struct slice url;
    if (!cache_call_take_url(call, &url))
        return false;
    *name = cache_call_name_of(call, url);
    return true;
}

struct content_store cache_call_store(const struct cache_call *call) {
    return (struct content_store){.cache = call->cache, .second_level = call->second_level};
}

void cache_call_answer_count(const struct cache_call *call, const char *what, uint64_t count) {
    page_json(call->page, 200, json_pack("{s:I}", what, (json_int_t)count));
}

void cache_call_answer_change(const struct cache_call *call, enum stored_result result,
                              const char *what, uint64_t count) {
    switch (result) {
    case STORED_CHANGED: cache_call_answer_count(call, what, count); break;
    case STORED_NOTHING: cache_call_not_stored(call); break;
    case STORED_NOT_KEPT: page_not_kept(call->page); break;
    }
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
