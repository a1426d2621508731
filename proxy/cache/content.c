#include "cache/content.h"

#include "http/url.h"

#include <time.h>

static bool has_host(struct slice url_text, struct slice host) {
    struct url url;
    return url_parse(&url, url_text) && slice_equal_nocase(url.host, host);
}

bool content_fits(const struct content_filter *filter, const struct object *object) {
    return slice_starts_with(object->url, filter->prefix) &&
           (filter->host.length == 0 || has_host(object->url, filter->host)) &&
           (filter->tag.length == 0 || object_has_tag(object, filter->tag)) &&
           (filter->regex == NULL || regexes_find(filter->regex, object->url));
}

static bool replace(struct cache *cache, struct object *object, int64_t seconds) {
    struct freshness freshness = object->freshness;
    freshness.lifetime = freshness_age(&freshness, time(NULL)) + seconds;
    freshness.always_revalidate = freshness.always_revalidate && seconds <= 0;
    struct object *changed = object_with_freshness(object, &freshness);
    bool replaced = cache_replace(cache, object, changed);
    object_release(&changed);
    return replaced;
}

/* A body that is still arriving may fail, and then takes the object with it that began it: such an
 * object can not be replaced by another. */
static void act(struct cache *cache, struct object *object, enum content_action action) {
    if (action == CONTENT_REMOVE || body_state(object->body) != BODY_COMPLETE)
        cache_remove(cache, object);
    else
        replace(cache, object, 0);
}

uint64_t content_purge(struct cache *cache, const struct content_filter *filter,
                       enum content_action action) {
    struct cache_walk walk = {0};
    uint64_t count = 0;
    while (cache_walk(cache, &walk, CACHE_BATCH))
        for (size_t i = 0; i < walk.count; i++)
            if (content_fits(filter, walk.objects[i])) {
                act(cache, walk.objects[i], action);
                count++;
            }
    cache_walk_end(&walk);
    return count;
}

uint64_t content_purge_key(struct cache *cache, struct cache_key key, enum content_action action) {
    struct cache_walk walk = {0};
    cache_walk_key(cache, &walk, key);
    for (size_t i = 0; i < walk.count; i++)
        act(cache, walk.objects[i], action);
    uint64_t count = walk.count;
    cache_walk_end(&walk);
    return count;
}

uint64_t content_set_lifetime(struct cache *cache, struct cache_key key, int64_t seconds) {
    struct cache_walk walk = {0};
    uint64_t count = 0;
    cache_walk_key(cache, &walk, key);
    for (size_t i = 0; i < walk.count; i++)
        if (!cache_is_banned(cache, walk.objects[i]) &&
            body_state(walk.objects[i]->body) == BODY_COMPLETE)
            count += replace(cache, walk.objects[i], seconds);
    cache_walk_end(&walk);
    return count;
}

uint64_t content_pin(struct cache *cache, struct cache_key key, bool pinned) {
    struct cache_walk walk = {0};
    uint64_t count = 0;
    cache_walk_key(cache, &walk, key);
    for (size_t i = 0; i < walk.count; i++)
        count += cache_pin(cache, walk.objects[i], pinned);
    cache_walk_end(&walk);
    return count;
}
