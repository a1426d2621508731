#include "store_bench.h"

#include <time.h>

struct cache *the_cache;

struct slice cached_url(unsigned number, char *text, size_t capacity) {
    return slice_make(text, (size_t)snprintf(text, capacity, "http://a.org/%u", number));
}

void plain_head(struct http_head *head, unsigned status) {
    http_head_init(head);
    head->version = 11;
    head->status = status;
    head->method_id = HTTP_METHOD_GET;
    head->reason = SLICE("OK");
}

unsigned variants_most;

bool put_cached_since(const struct cache_moment *since, struct slice url, const char *name,
                      const char *value, const char *kind, size_t size) {
    struct http_head request, response;
    struct freshness freshness = {.lifetime = 60, .response_time = time(NULL) - 5};
    char *bytes = calloc(1, size + 1);
    plain_head(&request, 0);
    plain_head(&response, 200);
    if (kind != NULL) {
        http_head_add(&request, SLICE("Kind"), slice_from(kind));
        http_head_add(&response, SLICE("Vary"), SLICE("Kind"));
    }
    if (name != NULL)
        http_head_add(&response, slice_from(name), slice_from(value));
    struct body *body = body_of_bytes(slice_make(bytes, size));
    struct object *object =
        object_new(cache_key_of(url), url, &request, &response, &freshness, body);
    struct cache_arrival arrival = {.since = *since, .max_variants = variants_most};
    bool stored = cache_insert(the_cache, object, &arrival);
    object_release(&object);
    body_release(&body);
    free(bytes);
    return stored;
}

void put_cached_with(struct slice url, const char *name, const char *value, const char *kind,
                     size_t size) {
    struct cache_moment now = cache_now(the_cache);
    put_cached_since(&now, url, name, value, kind, size);
}

void put_cached(struct slice url, size_t size) {
    put_cached_with(url, NULL, NULL, NULL, size);
}

struct object *look_up(struct slice url, const char *kind) {
    struct http_head request;
    plain_head(&request, 0);
    if (kind != NULL)
        http_head_add(&request, SLICE("Kind"), slice_from(kind));
    return cache_lookup(the_cache, NAME_OF(url), &request, OBJECT_FORWARD);
}

bool is_found(struct slice url) {
    struct object *object = look_up(url, NULL);
    bool found = object != NULL;
    object_release(&object);
    return found;
}

bool is_cached(struct slice url) {
    struct cache_walk walk = {0};
    bool there = cache_walk_name(the_cache, &walk, NAME_OF(url));
    cache_walk_end(&walk);
    return there;
}

void start_cache(void) {
    the_cache = cache_new(LIMIT);
}

struct cache_statistics counted(void) {
    struct cache_statistics statistics;
    cache_statistics(the_cache, &statistics);
    return statistics;
}

void stop_cache(void) {
    struct object_filter all = {0};
    cache_change_purge(the_cache, &all, PURGE_REMOVE);
    struct cache_statistics statistics = counted();
    ck_assert_uint_eq(statistics.objects, 0);
    ck_assert_uint_eq(statistics.bytes, 0);
    ck_assert_uint_eq(statistics.pinned, 0);
    cache_free(&the_cache);
}
