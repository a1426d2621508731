/*
 * Replacement decides which stored objects are removed when another object comes or is removed. RFC
 * 9111 §4: "When more than one suitable response is stored, a cache MUST use the most recent one".
 * So an object takes the place of each object that some request would select as well. The store
 * (cache/store.c) asks, and removes.
 *
 *     struct cache_walk gone = {0};
 *     replacement_gather(shard, object, replacement_rule(shard, object, yields), &gone);
 *     ... the objects of the walk leave the index ...
 *     cache_walk_end(&gone);                                        without the lock
 *
 * Threads: under the lock of the object's shard.
 */
#ifndef RETORT_CACHE_REPLACEMENT_H
#define RETORT_CACHE_REPLACEMENT_H

#include "cache/shard.h"
#include "cache/walk.h"

/* Is `old` removed when `object` comes, or when `object` is removed? */
typedef bool replacement_fn(const struct object *old, const struct object *object);

/* `object` comes in the place of `old`: a request for `old` would select `object` as well. */
bool replacement_is_replaced(const struct object *old, const struct object *object);
/* True if replacement_is_replaced is true, or if services have made `old` of an object that
 * is replaced. */
bool replacement_is_superseded(const struct object *old, const struct object *object);
/* Have services made `old` of `object`? */
bool replacement_is_made_of(const struct object *old, const struct object *object);

/* The rule for an object that comes. If the object is a stored body with a new head, the
 * variants that services have made of that body stay. yields: the object gives way to what it
 * would supersede. */
replacement_fn *replacement_rule(struct shard *shard, const struct object *object, bool yields);
/* Puts the objects of the same key for which `goes` is true into the walk, referenced: they are
 * freed by cache_walk_end, when the lock is not held any more. */
void replacement_gather(struct shard *shard, const struct object *object, replacement_fn *goes,
                        struct cache_walk *walk);
/* The oldest variant of the object's name, when there are max_variants of them or more; NULL: there
 * are fewer, none may go, or max_variants is 0. Every look-up walks through the variants of a name.
 * An object that services have made of a response does not drive out a response. One that is held
 * stays until the disk has it: what has left memory before counts as replaced by a newer one. */
struct object *replacement_surplus(struct shard *shard, const struct object *object,
                                   unsigned max_variants);
/* Is the object stored, or is its body stored under a newer head? */
bool replacement_is_stored(struct shard *shard, const struct object *object);
/* Is a pinned object among those of the walk that `object` replaces? */
bool replacement_has_pinned(const struct object *object, const struct cache_walk *walk);

#endif
