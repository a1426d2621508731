#include "cache/store.h"

#include "base/assert.h"
#include "cache/memory.h"
#include "cache/purge.h"
#include "cache/replacement.h"
#include "cache/shard.h"
#include "cache/vouching.h"

#include <time.h>

/* When this many bans are in force, or this many numbers were given out, all objects are compared
 * with the bans. */
enum { BANS_MANY = 64, NUMBERS_MANY = 1024 };
/* When this many purges have to be compared one by one with each object, a walk starts at once. */
enum { PURGES_SLOW = 64 };
/* RESERVE_PART: 1/128 of the limit is kept as free pages, which the next object takes without
 * asking the system. SCATTERED: see is_scattered. */
enum { RESERVE_PART = 128, SCATTERED_PART = 8, SCATTERED_LEAST = 1 << 20 };
/* The last 1/16 of the limit does not count as room. */
enum { ROOM_PART = 16 };
/* Bytes that are freed together when the system refuses memory. */
enum { GIVE_BACK = 1 << 20 };

struct cache {
    unsigned magic;
#define CACHE_MAGIC 0xcac4e000u
    _Atomic size_t limit, bytes, index_bytes;
    _Atomic uint64_t objects, pinned, evictions, variants_dropped;
    pthread_mutex_t banning; /* one ban at a time */
    struct bans bans;
    struct purges purges;
    struct purger purger;
    struct object_eviction eviction;
    struct shard shards[SHARDS];
};

static void set_limit(struct cache *cache, size_t limit) {
    atomic_store_explicit(&cache->limit, limit, memory_order_relaxed);
    memory_set_reserve(limit / RESERVE_PART);
}

static void cache_add(_Atomic uint64_t *count, uint64_t number) {
    atomic_fetch_add_explicit(count, number, memory_order_relaxed);
}

static size_t add_bytes(_Atomic size_t *bytes, size_t number) {
    return atomic_fetch_add_explicit(bytes, number, memory_order_relaxed);
}

/* Adds an object to the index, which takes a reference of its own. Called under the
 * shard's lock. */
static void link_object(struct cache *cache, struct shard *shard, struct object *object) {
    object_reference(object);
    if (shard_add(shard, object))
        add_bytes(&cache->index_bytes, sizeof object);
    object_eviction_enter(&cache->eviction, object);
    object->indexed = true;
    cache_add(&cache->pinned, object->pinned);
    add_bytes(&cache->bytes, object_cost(object));
    cache_add(&cache->objects, 1);
}

/* Takes those of the objects that are in the index out of it, and returns how many. Called under
 * the shard's lock. The index's references are released. The caller has references of its own, so
 * that nothing is freed under the lock. */
static size_t unlink_objects(struct cache *cache, struct shard *shard, struct object **objects,
                             size_t count) {
    uint64_t pinned = 0;
    size_t bytes = 0, taken = 0;
    object_eviction_leave(&cache->eviction, objects, count);
    for (size_t i = 0; i < count; i++) {
        struct object *object = objects[i];
        if (!object->indexed)
            continue;
        shard_take(shard, object);
        bans_leave(&cache->bans, &object->checked);
        object->indexed = false;
        pinned += object->pinned;
        bytes += object_cost(object);
        object_release(&object);
        taken++;
    }
    cache_add(&cache->pinned, -pinned);
    add_bytes(&cache->bytes, -bytes);
    cache_add(&cache->objects, -(uint64_t)taken);
    return taken;
}

/* False: it was not there any more. For what a purge found it is counted before the lock is released: a walk that no longer finds
 * the object has had the lock behind that, so the count of the purge has it. */
static bool remove_found(struct cache *cache, struct object *object,
                         const struct filter_found *found) {
    struct shard *shard = shard_of(cache->shards, object->key);
    pthread_mutex_lock(&shard->lock);
    bool removed = unlink_objects(cache, shard, &object, 1) > 0;
    if (removed && found->action == PURGE_REMOVE)
        purges_note_removal(&cache->purges, found);
    pthread_mutex_unlock(&shard->lock);
    return removed;
}

bool cache_remove(struct cache *cache, struct object *object) {
    return remove_found(cache, object, &(struct filter_found){.action = PURGE_NOTHING});
}

/* An object is compared as if it were looked up. So an object that another thread makes stale at
 * the same time is counted once. */
static void walk_for_purges(void *arg) {
    enum { BATCH = 256 }; /* few, so that they are still in the caches when they are freed */
    struct cache *cache;
    CAST_OBJ(cache, arg, CACHE_MAGIC);
    uint64_t until = purges_newest(&cache->purges);
    struct cache_walk walk = {.purges = &cache->purges};
    while (cache_walk(cache, &walk, BATCH))
        for (size_t i = 0; i < walk.count; i++) {
            struct filter_found found = purges_compare(&cache->purges, walk.objects[i]);
            if (found.action == PURGE_REMOVE)
                remove_found(cache, walk.objects[i], &found);
        }
    cache_walk_end(&walk);
    purges_end_walk(&cache->purges, until);
}

const struct vouching vouching_always = {.until = UINT64_MAX};

struct cache *cache_new(size_t limit) {
    struct cache *cache;
    cache = aligned_alloc(64, sizeof *cache);
    ASSERT(cache != NULL);
    INIT_OBJ(cache, CACHE_MAGIC);
    set_limit(cache, limit);
    pthread_mutex_init(&cache->banning, NULL);
    bans_init(&cache->bans);
    purges_init(&cache->purges);
    purger_init(&cache->purger, walk_for_purges, cache);
    object_eviction_init(&cache->eviction);
    for (unsigned i = 0; i < SHARDS; i++)
        shard_init(&cache->shards[i]);
    return cache;
}

void cache_free(struct cache **cachep) {
    struct cache *cache = *cachep;
    struct object *object;
    *cachep = NULL;
    CHECK_OBJ(cache, CACHE_MAGIC);
    purger_release(&cache->purger);
    while ((object = object_eviction_any(&cache->eviction)) != NULL) {
        cache_remove(cache, object);
        object_release(&object);
    }
    for (unsigned i = 0; i < SHARDS; i++)
        shard_release(&cache->shards[i]);
    object_eviction_release(&cache->eviction);
    purges_release(&cache->purges);
    bans_release(&cache->bans);
    pthread_mutex_destroy(&cache->banning);
    FREE_OBJ(cache);
}

/* Under the shard's lock. */
static struct object *cache_take(struct object *object) {
    uint32_t hits = atomic_load_explicit(&object->hits, memory_order_relaxed);
    atomic_store_explicit(&object->hits, hits + 1, memory_order_relaxed);
    return object_reference(object);
}

static struct object *cache_find(struct cache *cache, const struct cache_name *name,
                                 const struct http_head *request, enum object_scope scope) {
    struct shard *shard = shard_of(cache->shards, name->key);
    struct object *found = NULL;
    pthread_mutex_lock(&shard->lock);
    for (struct object *object = *shard_chain(shard, name->key); object != NULL;
         object = object->next) {
        if (!object_has_name(object, name) || !object_matches(object, request, scope) ||
            object_chain(object) != 0)
            continue;
        found = cache_take(object);
        break;
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

/* Finds the stored response, and the variant that the chain made of it. */
static struct object *find_made(struct cache *cache, const struct cache_name *name,
                                const struct http_head *request, enum object_scope scope,
                                uint32_t chain, struct object **made) {
    struct shard *shard = shard_of(cache->shards, name->key);
    struct object *found = NULL;
    *made = NULL;
    pthread_mutex_lock(&shard->lock);
    for (struct object *object = *shard_chain(shard, name->key); object != NULL;
         object = object->next) {
        if (!object_has_name(object, name) || !object_matches(object, request, scope))
            continue;
        uint32_t by = object_chain(object);
        if (by == 0 && found == NULL)
            found = cache_take(object);
        else if (by == chain && *made == NULL)
            *made = cache_take(object);
    }
    pthread_mutex_unlock(&shard->lock);
    if (found != NULL && *made != NULL && !object_is_made_of(*made, found))
        object_release(made);
    return found;
}

bool cache_is_banned(struct cache *cache, struct object *object) {
    return purges_check(&cache->purges, object).action == PURGE_REMOVE ||
           bans_check(&cache->bans, object) == PURGE_REMOVE;
}

static bool remove_if_banned(struct cache *cache, struct object *object) {
    struct filter_found found = purges_check(&cache->purges, object);
    if (found.action != PURGE_REMOVE && bans_check(&cache->bans, object) != PURGE_REMOVE)
        return false;
    remove_found(cache, object, &found);
    return true;
}

static void visit(struct object *object) {
    if (object != NULL && !atomic_load_explicit(&object->visited, memory_order_relaxed))
        atomic_store_explicit(&object->visited, true, memory_order_relaxed);
}

struct object *cache_lookup(struct cache *cache, const struct cache_name *name,
                            const struct http_head *request, enum object_scope scope) {
    struct object *found;
    while ((found = cache_find(cache, name, request, scope)) != NULL &&
           remove_if_banned(cache, found))
        object_release(&found);
    visit(found);
    return found;
}

/* Removes the object if it is banned, and sets *objectp to NULL. */
static void keep_allowed(struct cache *cache, struct object **objectp) {
    if (*objectp != NULL && remove_if_banned(cache, *objectp))
        object_release(objectp);
}

struct object *cache_lookup_made(struct cache *cache, const struct cache_name *name,
                                 const struct http_head *request, enum object_scope scope,
                                 uint32_t chain, struct object **made) {
    struct object *found = find_made(cache, name, request, scope, chain, made);
    keep_allowed(cache, &found);
    keep_allowed(cache, made);
    visit(found); /* an old variant is made again of it */
    visit(*made);
    return found;
}

/* When the sizes of new objects change, a few old objects keep whole slabs of sizes that nobody
 * asks for any more. Then the oldest objects are evicted, visited or not. */
static bool is_scattered(const struct cache *cache) {
    size_t used = atomic_load_explicit(&cache->bytes, memory_order_relaxed);
    size_t limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    return memory_held() > used + limit / SCATTERED_PART + SCATTERED_LEAST;
}

static bool cache_evict_one(struct cache *cache) {
    struct object *victim = is_scattered(cache) ? object_eviction_choose_oldest(&cache->eviction)
                                                : object_eviction_choose(&cache->eviction);
    if (victim == NULL)
        return false;
    cache_remove(cache, victim);
    object_release(&victim);
    cache_add(&cache->evictions, 1);
    return true;
}

static bool cache_is_full(const struct cache *cache) {
    return memory_held() + atomic_load_explicit(&cache->index_bytes, memory_order_relaxed) >
           atomic_load_explicit(&cache->limit, memory_order_relaxed);
}

static void cache_keep_limit(struct cache *cache) {
    while (cache_is_full(cache))
        if (!cache_evict_one(cache))
            return;
}

bool cache_has_room(const struct cache *cache, uint64_t bytes) {
    size_t limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    return memory_held() + atomic_load_explicit(&cache->index_bytes, memory_order_relaxed) +
               bytes <=
           limit - limit / ROOM_PART;
}

void cache_set_limit(struct cache *cache, size_t limit) {
    set_limit(cache, limit);
    cache_keep_limit(cache);
}

/* Called when the system refuses memory: evicts until GIVE_BACK bytes less are held. */
bool cache_give_back(void *arg) {
    struct cache *cache = arg;
    size_t held = memory_held();
    CHECK_OBJ(cache, CACHE_MAGIC);
    bool gave = false;
    while (held - memory_held() < GIVE_BACK && memory_held() <= held && cache_evict_one(cache))
        gave = true;
    return gave;
}

/* A body whose length was not known may have more memory than it needs. */
static void compact(struct object *object) {
    struct body *body = object->body;
    if (body_state(body) != BODY_COMPLETE)
        return;
    object->body = body_compact(body);
    body_release(&body);
}

struct cache_moment cache_now(const struct cache *cache) {
    return (struct cache_moment){
        .purges = purges_newest(&cache->purges),
        .keys = purges_newest_key(&cache->purges),
        .bans = bans_newest(&cache->bans),
    };
}

/* Takes the shard's lock. A purge gets its number before its walk. So either the purge is known
 * here under the lock, or its walk will come to this shard later. False: the object was purged on
 * its way. */
static bool lock_for(struct cache *cache, struct shard *shard, struct object *object,
                     const struct cache_moment *since) {
    for (;;) {
        uint64_t newest = purges_newest(&cache->purges);
        enum purge_action action = purges_judge(&cache->purges, object, since->purges);
        if (action == PURGE_STALE || action == PURGE_DOUBT)
            object_outdate(object, action == PURGE_DOUBT, time(NULL));
        pthread_mutex_lock(&shard->lock);
        if (action != PURGE_REMOVE && newest == purges_newest(&cache->purges) &&
            !purges_has_key(&cache->purges, object->key, since->keys) &&
            bans_enter(&cache->bans, &object->checked, since->bans)) {
            purges_enter(&cache->purges, object);
            return true;
        }
        bool again = newest != purges_newest(&cache->purges);
        pthread_mutex_unlock(&shard->lock);
        if (!again)
            return false;
    }
}

/* A variant that services made of a response counts as old as the response, so that a ban or purge
 * since then concerns both. */
static struct cache_moment moment_of(const struct cache *cache,
                                     const struct cache_arrival *arrival) {
    struct cache_moment since = arrival->since;
    if (arrival->of == NULL)
        return since;
    uint64_t bans = bans_number_of(&cache->bans, arrival->of);
    uint64_t purges = purges_number_of(&cache->purges, arrival->of);
    since.bans = bans < since.bans ? bans : since.bans;
    since.purges = purges < since.purges ? purges : since.purges;
    return since;
}

/* Two at a time, as one that was held may have stayed when another one came. The caller releases
 * them without the lock. */
enum { SURPLUS_MOST = 2 };

static void take_surplus(struct cache *cache, struct shard *shard, const struct object *object,
                         unsigned max_variants, struct object *surplus[SURPLUS_MOST]) {
    for (unsigned i = 0; i < SURPLUS_MOST; i++) {
        surplus[i] = replacement_surplus(shard, object, max_variants);
        if (surplus[i] == NULL)
            continue;
        object_reference(surplus[i]);
        unlink_objects(cache, shard, &surplus[i], 1);
        cache_add(&cache->variants_dropped, 1);
    }
}

bool cache_insert(struct cache *cache, struct object *object, const struct cache_arrival *arrival) {
    struct cache_walk gone = {0};
    struct object *surplus[SURPLUS_MOST];
    struct cache_moment since = moment_of(cache, arrival);
    CHECK_OBJ(object, OBJECT_MAGIC);
    struct shard *shard = shard_of(cache->shards, object->key);
    compact(object);
    if (!lock_for(cache, shard, object, &since))
        return false;
    replacement_gather(shard, object, replacement_rule(shard, object, arrival->yields), &gone);
    if ((gone.count > 0 && arrival->yields) ||
        (arrival->of != NULL && !replacement_is_stored(shard, arrival->of))) {
        bans_leave(&cache->bans, &object->checked);
        pthread_mutex_unlock(&shard->lock);
        cache_walk_end(&gone);
        return false;
    }
    object->pinned = replacement_has_pinned(object, &gone);
    object->holds += arrival->held;
    unlink_objects(cache, shard, gone.objects, gone.count);
    take_surplus(cache, shard, object, arrival->max_variants, surplus);
    link_object(cache, shard, object);
    pthread_mutex_unlock(&shard->lock);
    for (unsigned i = 0; i < SURPLUS_MOST; i++)
        object_release(&surplus[i]);
    cache_walk_end(&gone);
    cache_keep_limit(cache);
    return true;
}

void cache_supersede(struct cache *cache, const struct object *object) {
    struct shard *shard = shard_of(cache->shards, object->key);
    struct cache_walk gone = {0};
    pthread_mutex_lock(&shard->lock);
    replacement_gather(shard, object, replacement_is_superseded, &gone);
    unlink_objects(cache, shard, gone.objects, gone.count);
    pthread_mutex_unlock(&shard->lock);
    cache_walk_end(&gone);
}

/* Under the shard's lock. The object is in the index. */
static void let_stay(struct cache *cache, struct object *object, bool pinned, unsigned holds) {
    object_eviction_leave(&cache->eviction, &object, 1);
    object->pinned = pinned;
    object->holds = (uint16_t)holds;
    object_eviction_enter(&cache->eviction, object);
}

bool cache_pin(struct cache *cache, struct object *object, bool pinned) {
    struct shard *shard = shard_of(cache->shards, object->key);
    if (remove_if_banned(cache, object))
        return false;
    pthread_mutex_lock(&shard->lock);
    bool there = object->indexed;
    if (there && object->pinned != pinned) {
        let_stay(cache, object, pinned, object->holds);
        cache_add(&cache->pinned, pinned ? 1 : (uint64_t)-1);
    }
    pthread_mutex_unlock(&shard->lock);
    cache_keep_limit(cache);
    return there;
}

bool cache_hold(struct cache *cache, struct object *object) {
    struct shard *shard = shard_of(cache->shards, object->key);
    if (remove_if_banned(cache, object))
        return false;
    pthread_mutex_lock(&shard->lock);
    bool there = object->indexed;
    if (there) {
        ASSERT(object->holds < UINT16_MAX); /* each is of a thread that waits for it */
        let_stay(cache, object, object->pinned, object->holds + 1u);
    }
    pthread_mutex_unlock(&shard->lock);
    return there;
}

void cache_unhold(struct cache *cache, struct object *object) {
    struct shard *shard = shard_of(cache->shards, object->key);
    pthread_mutex_lock(&shard->lock);
    ASSERT(object->holds > 0);
    if (object->indexed)
        let_stay(cache, object, object->pinned, object->holds - 1u);
    else
        object->holds--;
    pthread_mutex_unlock(&shard->lock);
    cache_keep_limit(cache);
}

bool cache_uses(struct cache *cache, uint64_t low_key) {
    struct cache_key key = {.low = low_key};
    struct shard *shard = shard_of(cache->shards, key);
    bool used = false;
    pthread_mutex_lock(&shard->lock);
    for (struct object *object = *shard_chain(shard, key); object != NULL; object = object->next)
        used = used || (object->key.low == low_key &&
                        atomic_load_explicit(&object->hits, memory_order_relaxed) > 0);
    pthread_mutex_unlock(&shard->lock);
    return used;
}

bool cache_has(struct cache *cache, const struct object *object) {
    struct shard *shard = shard_of(cache->shards, object->key);
    pthread_mutex_lock(&shard->lock);
    bool there = object->indexed;
    pthread_mutex_unlock(&shard->lock);
    return there;
}

void cache_drop(struct cache *cache, struct object *object) {
    struct shard *shard = shard_of(cache->shards, object->key);
    struct cache_walk made = {0};
    pthread_mutex_lock(&shard->lock);
    unlink_objects(cache, shard, &object, 1);
    replacement_gather(shard, object, replacement_is_made_of, &made);
    unlink_objects(cache, shard, made.objects, made.count);
    pthread_mutex_unlock(&shard->lock);
    cache_walk_end(&made);
}

/* The objects of a walk are in the order of their shards, so each lock is taken once for
 * many objects. */
size_t cache_remove_all(struct cache *cache, struct cache_walk *walk) {
    size_t removed = 0, from = 0, to;
    for (; from < walk->count; from = to) {
        struct shard *shard = shard_of(cache->shards, walk->objects[from]->key);
        for (to = from + 1; to < walk->count; to++)
            if (shard_of(cache->shards, walk->objects[to]->key) != shard)
                break;
        for (size_t i = from; i < to; i++)
            __builtin_prefetch(walk->objects[i]->body, 1);
        pthread_mutex_lock(&shard->lock);
        removed += unlink_objects(cache, shard, walk->objects + from, to - from);
        pthread_mutex_unlock(&shard->lock);
        for (size_t i = from; i < to; i++)
            object_prefetch_release(walk->objects[i]);
    }
    return removed;
}

unsigned cache_remove_name(struct cache *cache, const struct cache_name *name) {
    struct cache_walk walk = {0};
    purges_add_key(&cache->purges, name->key);
    cache_walk_name(cache, &walk, name);
    unsigned count = (unsigned)cache_remove_all(cache, &walk);
    cache_walk_end(&walk);
    return count;
}

bool cache_walk(struct cache *cache, struct cache_walk *walk, size_t most) {
    walk->bans = &cache->bans;
    return cache_walk_shards(walk, cache->shards, most);
}

bool cache_walk_name(struct cache *cache, struct cache_walk *walk, const struct cache_name *name) {
    return cache_walk_shard(walk, shard_of(cache->shards, name->key), name);
}

bool cache_walk_key(struct cache *cache, struct cache_walk *walk, struct cache_key key) {
    const struct cache_name any = {.key = key};
    return cache_walk_name(cache, walk, &any);
}

struct purges *cache_purges(struct cache *cache) {
    return &cache->purges;
}

/* Compares all objects with the bans, so that all move to the newest number, whether a ban may
 * concern them or not. An object that is stored meanwhile stands at a number that its request saw:
 * bans_drop_spent keeps the bans that such objects have yet to be compared with. */
static void apply_bans(struct cache *cache) {
    struct cache_walk walk = {.number = bans_newest(&cache->bans)};
    while (cache_walk(cache, &walk, CACHE_BATCH))
        for (size_t i = 0; i < walk.count; i++)
            if (bans_compare(&cache->bans, walk.objects[i]) == PURGE_REMOVE)
                cache_remove(cache, walk.objects[i]);
    cache_walk_end(&walk);
    bans_drop_spent(&cache->bans);
}

static uint64_t cache_add_ban(struct cache *cache, const struct object_filter *filter,
                              enum purge_action action) {
    pthread_mutex_lock(&cache->banning);
    bans_drop_spent(&cache->bans);
    uint64_t before = bans_newest(&cache->bans);
    uint64_t number = bans_add(&cache->bans, filter, action);
    if (cache->bans.count >= BANS_MANY || before / NUMBERS_MANY != number / NUMBERS_MANY)
        apply_bans(cache);
    pthread_mutex_unlock(&cache->banning);
    return number;
}

uint64_t cache_ban(struct cache *cache, const char *text, char *error, size_t error_size) {
    struct regexes regex;
    struct object_filter filter = {.regex = &regex, .regex_text = text};
    if (!regex_check(text, error, error_size))
        return 0;
    regexes_compile(&regex, (char *[]){(char *)text, NULL});
    uint64_t number = cache_add_ban(cache, &filter, PURGE_REMOVE);
    regexes_release(&regex);
    return number;
}

uint64_t cache_purge_begin(struct cache *cache, const struct object_filter *filter,
                           enum purge_action action) {
    return purges_add(&cache->purges, filter, action);
}

bool cache_purge_walk(struct cache *cache, bool at_once) {
    if (!at_once && purges_slow(&cache->purges) < PURGES_SLOW)
        return purger_walk_soon(&cache->purger);
    purger_walk_now(&cache->purger);
    return true;
}

uint64_t cache_purge_count(struct cache *cache, const struct object_filter *filter,
                           uint64_t number) {
    return purges_hits(&cache->purges, filter, number);
}

struct bans *cache_bans(struct cache *cache) {
    bans_drop_spent(&cache->bans);
    return &cache->bans;
}

void cache_statistics(struct cache *cache, struct cache_statistics *statistics) {
    statistics->bytes = atomic_load_explicit(&cache->bytes, memory_order_relaxed);
    statistics->objects = atomic_load_explicit(&cache->objects, memory_order_relaxed);
    statistics->pinned = atomic_load_explicit(&cache->pinned, memory_order_relaxed);
    statistics->limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    statistics->evictions = atomic_load_explicit(&cache->evictions, memory_order_relaxed);
    statistics->variants_dropped =
        atomic_load_explicit(&cache->variants_dropped, memory_order_relaxed);
}
