/*
 * Who goes first when room is needed. SIEVE (Zhang et al., NSDI '24): objects stand in the order of
 * their arrival, a hit sets one bit and moves nothing, and a hand walks from old to new, clears
 * bits and evicts what has none. Chosen over LRU because a hit writes no list and takes no lock for
 * promotion, and over S3-FIFO because it needs one queue and no ghosts for the same miss ratios on
 * web traces; one scan of unvisited objects passes through without displacing visited ones.
 *
 *     sieve_enter(&sieve, object);
 *     atomic_store(&object->visited, true);                              at a hit
 *     struct object *victim = sieve_choose(&sieve);                      referenced; NULL: none
 *     sieve_leave(&sieve, &victim, 1);
 *
 * Pinned objects stand apart and are never chosen.
 *
 * Threads: any; a lock of its own, touched when an object comes or goes, not by hits. Whoever
 * enters an object or takes it out holds the lock of the object's shard.
 */
#ifndef RETORT_CACHE_SIEVE_H
#define RETORT_CACHE_SIEVE_H

#include "cache/object.h"

struct sieve {
    pthread_mutex_t lock;
    struct list_link objects; /* newest first */
    struct list_link pinned;
    struct list_link *hand; /* next to be looked at; &objects: start at the oldest */
};

void sieve_init(struct sieve *sieve);
void sieve_release(struct sieve *sieve); /* empty */
void sieve_enter(struct sieve *sieve, struct object *object);
/* Those that are not in it are passed over. */
void sieve_leave(struct sieve *sieve, struct object **objects, size_t count);
/* The next without a visit since the hand last passed. It stays where it is. */
struct object *sieve_choose(struct sieve *sieve);
/* The oldest, however often it was visited; likewise. */
struct object *sieve_choose_oldest(struct sieve *sieve);
/* Any one; NULL: it is empty. */
struct object *sieve_any(struct sieve *sieve);

#endif
