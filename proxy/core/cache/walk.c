#include "cache/walk.h"

#include "base/clocks.h"
#include "cache/ban.h"
#include "cache/purge.h"

#include <sched.h>

/* WALK_CHAINS: chains that are read under one hold of a lock. FETCHED_HEAD: bytes of a head
 * to prefetch. */
enum { WALK_CHAINS = 256, FETCHED_HEAD = 256 };
#define WALK_OVER (UINT64_C(1) << 48) /* no position */

static void release_batch(struct cache_walk *walk) {
    for (size_t i = 0; i < walk->count; i++)
        object_release(&walk->objects[i]);
    walk->count = 0;
}

static bool cache_walk_is_named(const struct object *object, const struct cache_name *name) {
    return name->url.base == NULL ? cache_key_equal(object->key, name->key)
                                  : object_has_name(object, name);
}

void cache_walk_take(struct cache_walk *walk, struct object *object,
                     const struct cache_name *only) {
    /* All data that decides, except surrogate keys, stands before the head. */
    size_t head = walk->filter != NULL && walk->filter->tag.length > 0 ? FETCHED_HEAD : 0;
    for (; object != NULL; object = object->next) {
        if ((only != NULL && !cache_walk_is_named(object, only)) ||
            (walk->filter != NULL && !object_filter_may_fit(walk->filter, object)) ||
            (walk->purges != NULL && !purges_may_concern(walk->purges, object)))
            continue;
        if (walk->count == walk->capacity) {
            walk->capacity = walk->capacity * 2 + 16;
            walk->objects = xrealloc(walk->objects, walk->capacity * sizeof(struct object *));
        }
        object_prefetch_whole(object, head);
        walk->objects[walk->count++] = object_reference(object);
    }
}

/* A walk spends its time waiting for memory, unless it prefetches the objects: first the first
 * objects of all chains at once, then all second ones, and so on. */
static void fetch_chains(const struct shard *shard, size_t bucket, size_t end) {
    const struct object *objects[WALK_CHAINS];
    size_t count = 0, left;
    for (; bucket < end; bucket++)
        if (shard->buckets[bucket] != NULL) {
            object_prefetch(shard->buckets[bucket]);
            objects[count++] = shard->buckets[bucket];
        }
    for (; count > 0; count = left) {
        left = 0;
        for (size_t i = 0; i < count; i++)
            if (objects[i]->next != NULL) {
                object_prefetch(objects[i]->next);
                objects[left++] = objects[i]->next;
            }
    }
}

static bool cache_walk_is_wanted(const struct cache_walk *walk, const struct object *object) {
    return (walk->number == 0 || bans_number_of(walk->bans, object) < walk->number) &&
           (walk->filter == NULL || object_filter_fits(walk->filter, object));
}

/* Drops those of the objects from index `first` on that are not wanted. */
static void cache_walk_choose(struct cache_walk *walk, size_t first) {
    size_t count = first;
    for (size_t i = first; i < walk->count; i++)
        if (cache_walk_is_wanted(walk, walk->objects[i]))
            walk->objects[count++] = walk->objects[i];
        else
            object_release(&walk->objects[i]);
    walk->count = count;
}

/* Takes the chains of one shard from `bucket` up to `end`. Returns the next bucket; SIZE_MAX: all
 * were taken. */
static size_t take_chains(struct cache_walk *walk, struct shard *shard, size_t bucket, size_t end,
                          size_t most) {
    size_t before = walk->count;
    pthread_mutex_lock(&shard->lock);
    bool last = end >= shard->bucket_count;
    if (last)
        end = shard->bucket_count;
    if (bucket < end)
        fetch_chains(shard, bucket, end);
    if (walk->purges != NULL)
        pthread_rwlock_rdlock(&walk->purges->lock);
    while (bucket < end && walk->count < most)
        cache_walk_take(walk, shard->buckets[bucket++], NULL);
    if (walk->purges != NULL)
        pthread_rwlock_unlock(&walk->purges->lock);
    pthread_mutex_unlock(&shard->lock);
    cache_walk_choose(walk, before);
    if (bucket < end)
        return bucket;
    walk->ended += last;
    return SIZE_MAX;
}

/* Lets other threads run about each millisecond: a thread that has the processor would keep it for
 * several milliseconds. */
static void end_round(struct cache_walk *walk, size_t next) {
    walk->position = walk->ended < SHARDS ? next << SHARD_BITS : WALK_OVER;
    sched_yield();
}

static bool walk_is_late(const struct cache_walk *walk) {
    return walk->until != 0 && clocks_nanoseconds(CLOCK_MONOTONIC) >= walk->until;
}

/* The walk goes in rounds. In each round it takes a few chains of each shard, so that a thread that
 * waits for a shard's lock gets it before the walk comes back to that shard. The walk is over when
 * all shards have ended in the same round. So it is late only between rounds: a walk that goes on in
 * the midst of one does not count the shards before. */
bool cache_walk_shards(struct cache_walk *walk, struct shard *shards, size_t most) {
    bool late = false;
    release_batch(walk);
    while (walk->count < most && walk->position != WALK_OVER && !late) {
        size_t shard = walk->position & (SHARDS - 1), bucket = walk->position >> SHARD_BITS;
        size_t begin = bucket - bucket % WALK_CHAINS, end = begin + WALK_CHAINS;
        if (shard == 0 && bucket == begin)
            walk->ended = 0;
        bucket = take_chains(walk, &shards[shard], bucket, end, most);
        if (bucket != SIZE_MAX) {
            walk->position = bucket << SHARD_BITS | shard;
        } else if (shard + 1 < SHARDS) {
            walk->position = begin << SHARD_BITS | (shard + 1);
        } else {
            end_round(walk, end);
            late = walk_is_late(walk);
        }
    }
    return walk->count > 0;
}

bool cache_walk_is_over(const struct cache_walk *walk) {
    return walk->position == WALK_OVER;
}

bool cache_walk_shard(struct cache_walk *walk, struct shard *shard, const struct cache_name *name) {
    release_batch(walk);
    pthread_mutex_lock(&shard->lock);
    cache_walk_take(walk, *shard_chain(shard, name->key), name);
    pthread_mutex_unlock(&shard->lock);
    return walk->count > 0;
}

void cache_walk_end(struct cache_walk *walk) {
    release_batch(walk);
    free(walk->objects);
    *walk = (struct cache_walk){0};
}
