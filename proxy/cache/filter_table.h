/*
 * Many filters at once: which of the events since then concerns this object? An event is a filter
 * with a number and what it does.
 *
 *     filter_table_add(&table, &filter, PURGE_REMOVE, number, keep_after);
 *     struct filter_found found = filter_table_find(&table, object, number_of_object);
 *     if (found.action == PURGE_REMOVE) ...
 *
 * A filter that is one surrogate key, one host or one prefix, and nothing else, is a hash in a
 * table: with the newest number that removed, and the newest that made stale. So a look costs as
 * much as the object has keys, and as there are different lengths of prefixes, however many events
 * there are. The hash has 64 bits and a secret (cache/name.h): two filters that have the same would
 * purge too much, never too little. Other filters are compared one by one.
 *
 * Threads: the caller locks: one who adds, or many who look. Memory: 32 bytes for each different
 * simple filter, a quarter to three quarters of the table full.
 */
#ifndef RETORT_CACHE_FILTER_TABLE_H
#define RETORT_CACHE_FILTER_TABLE_H

#include "base/list.h"
#include "cache/object_filter.h"

enum purge_action {
    PURGE_NOTHING,
    PURGE_STALE, /* asked for again before the next use; the old one is there should that fail */
    PURGE_REMOVE,
};

/* PREFIX_MOST: longer prefixes are compared one by one. */
enum { FILTER_TAG_BITS = 32, FILTER_PREFIX_MOST = 511 };

struct filter_entry {
    uint64_t hash;           /* 0: free */
    uint64_t removed, stale; /* numbers; 0: none */
    _Atomic uint32_t hits;   /* objects that it concerned; the caller counts */
    uint16_t prefix_length;  /* as filter_hash has them */
    int8_t tag_bit;
};

struct filter_other {
    unsigned magic;
#define FILTER_OTHER_MAGIC 0xf117e400u
    struct list_link link;
    uint64_t number;
    enum purge_action action;
    struct object_filter filter; /* a copy */
    _Atomic uint32_t hits;
};

struct filter_table {
    struct filter_entry *entries;
    size_t capacity, count;  /* of entries */
    struct list_link others; /* oldest first */
    size_t other_count;
    uint64_t newest;
    /* The newest number of its kind: what can't concern an object costs no look into the table. */
    uint64_t newest_tag[FILTER_TAG_BITS], newest_host, newest_prefix, newest_other;
    uint64_t lengths[(FILTER_PREFIX_MOST + 64) / 64]; /* of prefixes, a bit each */
};

struct filter_found {
    enum purge_action action;
    _Atomic uint32_t *hits; /* of the filter; NULL: none */
};

void filter_table_init(struct filter_table *table);
void filter_table_release(struct filter_table *table);
/* Of events with one filter and one action the newest counts, in whatever order they come. The hits
 * of a filter whose events are not newer than keep_after begin anew. */
void filter_table_add(struct filter_table *table, const struct object_filter *filter,
                      enum purge_action action, uint64_t number, uint64_t keep_after);
/* The event with a number above `after` that does most to the object. */
struct filter_found filter_table_find(const struct filter_table *table, const struct object *object,
                                      uint64_t after);
/* May there be one? For a look under a lock, which reads no more than the object's first lines. */
bool filter_table_may_find(const struct filter_table *table, const struct object *object,
                           uint64_t after);
/* Of that filter, or event; NULL: it is not there. */
_Atomic uint32_t *filter_table_hits(const struct filter_table *table,
                                    const struct object_filter *filter, uint64_t number);
/* A filter that is compared one by one comes again: what it did before, and no more than that
 * action, need not be known. */
void filter_table_drop_other(struct filter_table *table, const struct object_filter *filter,
                             enum purge_action action, uint64_t number);
/* Events up to that number. Returns the newest that has gone, 0: there was none. */
uint64_t filter_table_forget(struct filter_table *table, uint64_t until);

/* As a hash, if it is simple; else 0. */
uint64_t filter_hash(const struct object_filter *filter, size_t *prefix_length, int *tag_bit);
/* An event whose filter is known by that only. */
void filter_table_add_hash(struct filter_table *table, uint64_t hash, size_t prefix_length,
                           int tag_bit, enum purge_action action, uint64_t number,
                           uint64_t keep_after);

#endif
