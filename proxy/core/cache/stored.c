#include "cache/stored.h"

#include "cache/key.h"
#include "http/url.h"

#include <time.h>

/* Has the disk stored the change? `lapses`: what second_level_lapses was before. */
static bool stored_settle(const struct content_store *store, uint64_t lapses) {
    return second_level_commit(store->second_level) &&
           second_level_lapses(store->second_level) == lapses;
}

/* Brings what is on disk to memory and keeps it there, so that a change reaches the disk. */
static void stored_hold(const struct content_store *store, const struct cache_name *name,
                        struct cache_walk *held) {
    size_t count = 0;
    second_level_load_now(store->second_level, name);
    cache_walk_name(store->cache, held, name);
    for (size_t i = 0; i < held->count; i++)
        if (cache_hold(store->cache, held->objects[i]))
            held->objects[count++] = held->objects[i];
        else
            object_release(&held->objects[i]);
    held->count = count;
}

static void stored_unhold(const struct content_store *store, struct cache_walk *held) {
    for (size_t i = 0; i < held->count; i++)
        cache_unhold(store->cache, held->objects[i]);
    cache_walk_end(held);
}

/* Writes the changed variants to disk as they are now in memory. */
static void stored_keep(const struct content_store *store, const struct cache_name *name) {
    struct cache_walk walk = {0};
    if (second_level_has_lost(
            store->second_level)) /* what is not in memory must not return unchanged */
        second_level_forget(store->second_level, name);
    struct second_level_moment since = second_level_now(store->second_level);
    cache_walk_name(store->cache, &walk, name);
    for (size_t i = 0; i < walk.count; i++)
        second_level_store(store->second_level, walk.objects[i], &since);
    cache_walk_end(&walk);
}

static enum stored_result stored_result_of(const struct content_store *store, uint64_t lapses,
                                           uint64_t count) {
    if (!stored_settle(store, lapses))
        return STORED_NOT_KEPT;
    return count == 0 ? STORED_NOTHING : STORED_CHANGED;
}

/* False: there are none in memory. */
static bool stored_make_stale(const struct content_store *store, const struct cache_name *name,
                              uint64_t *count) {
    *count = cache_change_purge_name(store->cache, name, PURGE_STALE);
    if (*count > 0)
        stored_keep(store, name);
    return *count > 0;
}

enum stored_result stored_delete(const struct content_store *store, const struct cache_name *name,
                                 enum purge_action action, uint64_t *count) {
    struct cache_walk held = {0};
    stored_hold(store, name, &held);
    uint64_t lapses = second_level_lapses(store->second_level);
    if (action == PURGE_REMOVE || !stored_make_stale(store, name, count))
        *count = removal_of_name_surely(store->cache, store->second_level, name);
    stored_unhold(store, &held);
    return stored_result_of(store, lapses, *count);
}

enum stored_result stored_expire(const struct content_store *store, const struct cache_name *name,
                                 int64_t seconds, uint64_t *count) {
    struct cache_walk held = {0};
    stored_hold(store, name, &held);
    *count = cache_change_set_lifetime(store->cache, name, seconds);
    uint64_t lapses = second_level_lapses(store->second_level);
    stored_keep(store, name);
    stored_unhold(store, &held);
    return stored_result_of(store, lapses, *count);
}

enum stored_result stored_pin(const struct content_store *store, const struct cache_name *name,
                              bool pinned, uint64_t *count) {
    if (pinned)
        second_level_load_now(store->second_level, name);
    *count = cache_change_pin(store->cache, name, pinned);
    return *count == 0 ? STORED_NOTHING : STORED_CHANGED;
}

void stored_variants(const struct content_store *store, const struct cache_name *name,
                     struct cache_walk *walk) {
    second_level_load_now(store->second_level, name);
    cache_walk_name(store->cache, walk, name);
}

static const char *stored_state(struct cache *cache, struct object *object,
                                const struct freshness *freshness, int64_t left) {
    enum body_state body = body_state(object->body);
    if (cache_is_banned(cache, object))
        return "banned";
    if (body != BODY_COMPLETE)
        return body == BODY_FAILED ? "failed" : "arriving";
    return freshness->always_revalidate || left <= 0 ? "stale" : "fresh";
}

void stored_look(const struct content_store *store, struct object *object,
                 struct stored_facts *facts) {
    static const char *const services[] = {[OBJECT_UNSEEN] = "none",
                                           [OBJECT_SEEN] = "before it was stored",
                                           [OBJECT_MADE] = "behind the cache",
                                           [OBJECT_LEFT_ALONE] = "behind the cache, unchanged",
                                           [OBJECT_UNABLE] = "before it was stored, unable"};
    struct freshness freshness = object_freshness(object);
    time_t now = time(NULL);
    int64_t age = freshness_age(&freshness, now), left = freshness_left(&freshness, now);
    *facts = (struct stored_facts){
        .url = object_url(object),
        .head = object_head(object),
        .vary = object_selector(object),
        .state = stored_state(store->cache, object, &freshness, left),
        .services = services[object_provenance(object).kind],
        .status = object->status,
        .size = body_length(object->body),
        .memory = object_cost(object),
        .age = age,
        .left = left,
        .stored = object->response_time,
        .hits = atomic_load_explicit(&object->hits, memory_order_relaxed),
        .pinned = object->pinned,
        .on_disk = second_level_has(store->second_level, object->key),
    };
}

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
