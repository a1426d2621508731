/*
 * What is stored under one name: looks at it and changes it, in memory and on disk.
 *
 *     const struct content_store store = {cache, second_level};
 *     switch (stored_delete(&store, &name, PURGE_REMOVE, &count)) ...
 *
 *     struct cache_walk walk = {0};
 *     stored_variants(&store, &name, &walk);                what is only on disk comes to memory
 *     stored_look(&store, walk.objects[0], &facts);
 *     cache_walk_end(&walk);
 *
 * A change is answered when it is on the devices as far as disk.sync asks for it, so a restart does
 * not undo it; or the result says that this is not certain. A service and an operator get the same.
 *
 * Threads: those that may wait for a disk; never a worker.
 */
#ifndef RETORT_CACHE_STORED_H
#define RETORT_CACHE_STORED_H

#include "cache/removal.h"

struct content_store {
    struct cache *cache;
    struct second_level *second_level; /* NULL: there is none */
};

enum stored_result {
    STORED_CHANGED,
    STORED_NOTHING,  /* nothing is stored under the name */
    STORED_NOT_KEPT, /* the change is in force, but a restart would undo it */
};

/* These act on all variants. *count: how many there were. */
enum stored_result stored_delete(const struct content_store *store, const struct cache_name *name,
                                 enum purge_action action, uint64_t *count);
/* The lifetime counts from now on. 0: stale. */
enum stored_result stored_expire(const struct content_store *store, const struct cache_name *name,
                                 int64_t seconds, uint64_t *count);
/* Memory keeps the object whatever happens, or no longer. A restart ends that. */
enum stored_result stored_pin(const struct content_store *store, const struct cache_name *name,
                              bool pinned, uint64_t *count);

/* The variants, in an order that stays while none of them changes. */
void stored_variants(const struct content_store *store, const struct cache_name *name,
                     struct cache_walk *walk);

struct stored_facts {
    struct slice url, head, vary; /* of the object */
    const char *state;            /* "fresh", "stale", "arriving", "failed" or "banned" */
    const char *services;         /* how services had a hand in it, in words */
    unsigned status;
    uint64_t size, memory; /* bytes of the body, and of memory */
    int64_t age, left;     /* seconds; left: that it stays fresh, less than 0: it is stale */
    int64_t stored;        /* seconds since 1970 */
    uint64_t hits;
    bool pinned, on_disk;
};

/* The slices live as long as the object. */
void stored_look(const struct content_store *store, struct object *object,
                 struct stored_facts *facts);

/*
 * Names of stored objects, as whoever manages the content of the cache writes them: URLs, prefixes of URLs, and
 * hosts, normalised as those of requests are. After a reload, older objects may have other names.
 *
 *     struct slice url = content_url(SLICE("HTTP://A.org/%7ex"), &arena);     "http://a.org/~x"
 *     if (url.base == NULL) ...                                              this is not a URL
 */

/* base NULL: the text is not a URL. */
struct slice content_url(struct slice text, struct arena *arena);
/* The same for a prefix of URLs. Its last segment may be incomplete, so "/a/.." also stands for
 * "/a/..b" and is not resolved. */
struct slice content_prefix(struct slice text, struct arena *arena);
/* A host as in normalised URLs. A text that is not a host does not change. */
struct slice content_host(struct slice text, struct arena *arena);
/* `url` is normalised. */
struct cache_name content_name(struct slice url, const struct settings *settings,
                               struct arena *arena);

#endif
