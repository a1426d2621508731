/*
 * Compares an object with many filters at once: which event since a given number concerns the
 * object? An event is a filter, a number and an action. The purges in memory (cache/purge.h) and on
 * disk (disk/purge_log.h) are kept in such tables.
 *
 *     filter_table_add(&table, &filter, PURGE_REMOVE, number, keep_after);
 *     struct filter_found found = filter_table_find(&table, object, number_of_object);
 *     if (found.action == PURGE_REMOVE) ...
 *
 * A simple filter is one surrogate key, one host or one prefix, and nothing else. The table keeps
 * its hash, the newest number that removed, and the newest number that made stale. So the cost of a
 * search grows with the keys of the object and with the different lengths of prefixes, and not with
 * the number of events. The hash has 64 bits and a secret (cache/name.h). Two filters with the same
 * hash would purge too much, never too little. So no text is kept, as base/table.h would need. Other
 * filters are compared one by one.
 *
 * Threads: the caller holds a lock. One thread may add at a time, or several threads may search.
 * Memory: 32 bytes for each entry of the table, of which a quarter to three quarters are used by
 * simple filters.
 */
#ifndef RETORT_CACHE_FILTER_TABLE_H
#define RETORT_CACHE_FILTER_TABLE_H

#include "base/list.h"
#include "cache/object.h"
#include "match/regex.h"

/*
 * Selects objects by the beginning of their URL, by host, by surrogate key or by an expression.
 * Purges, bans and walks use these filters.
 *
 *     struct object_filter filter = {.prefix = SLICE("http://a.org/img/")};
 *     if (object_filter_fits(&filter, object)) ...
 *
 * Threads: filters are values without shared state. object_filter_copy makes a filter that owns
 * its parts.
 */

/* Each member that is not empty must fit the object. An empty filter fits all objects. */
struct object_filter {
    struct slice prefix, host, tag;
    const struct regexes *regex; /* NULL: any */
    const char *regex_text;      /* what regex was compiled from */
};

/* The part of a normalised URL that the filter's `host` is compared with. */
struct slice object_filter_host(struct slice url);
bool object_filter_fits(const struct object_filter *filter, const struct object *object);
/* Like object_filter_fits, for a check under a lock: it takes little time whatever is stored, but
 * may be true for a few objects that do not fit. */
bool object_filter_may_fit(const struct object_filter *filter, const struct object *object);
struct object_filter object_filter_copy(const struct object_filter *filter);
/* Releases the parts of a copy. */
void object_filter_release(struct object_filter *filter);

enum purge_action {
    PURGE_NOTHING,
    PURGE_STALE, /* revalidated before the next use; usable if the origin fails */
    PURGE_DOUBT, /* not used again before the origin has confirmed it; for the empty filter alone */
    PURGE_REMOVE,
};

/* FILTER_PREFIX_MOST: bytes; a filter with a longer prefix is compared one by one. */
enum { FILTER_TAG_BITS = 32, FILTER_PREFIX_MOST = 511 };

struct filter_entry {
    uint64_t hash;           /* 0: free */
    uint64_t removed, stale; /* numbers; 0: none */
    _Atomic uint32_t hits;   /* objects that it concerned; the caller counts */
    uint16_t prefix_length;  /* as filter_hash returns it */
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
    /* The newest number of each kind of filter: a kind that can't concern an object costs
     * no search. */
    uint64_t newest_tag[FILTER_TAG_BITS], newest_host, newest_prefix, newest_other;
    uint64_t lengths[(FILTER_PREFIX_MOST + 64) / 64]; /* of prefixes, a bit each */
};

struct filter_found {
    enum purge_action action;
    uint64_t hash;   /* of a simple filter; 0: it is another one */
    uint64_t number; /* of the event with that one */
};

void filter_table_init(struct filter_table *table);
void filter_table_release(struct filter_table *table);
/* The newest of several events with one filter and one action counts, in whatever order
 * they are added. The hits of a filter start again from 0 when none of its events is newer
 * than keep_after. */
void filter_table_add(struct filter_table *table, const struct object_filter *filter,
                      enum purge_action action, uint64_t number, uint64_t keep_after);
/* The hits of a simple filter start again from 0 likewise: it is added to another table. */
void filter_table_restart(struct filter_table *table, uint64_t hash, uint64_t keep_after);
/* The event with a number above `after` that does most to the object. */
struct filter_found filter_table_find(const struct filter_table *table, const struct object *object,
                                      uint64_t after);
/* May there be such an event? This is for a check under a lock: it reads only the first cache lines
 * of the object. */
bool filter_table_may_find(const struct filter_table *table, const struct object *object,
                           uint64_t after);
/* The hits of the simple filter with the hash, or (hash == 0) of the event with that number; NULL: not in
 * the table. */
_Atomic uint32_t *filter_table_hits(struct filter_table *table, uint64_t hash, uint64_t number);
/* A filter that is compared one by one comes again as event `number`: drops its older events that
 * do no more than `action`. */
void filter_table_drop_other(struct filter_table *table, const struct object_filter *filter,
                             enum purge_action action, uint64_t number);
/* Drops the events up to that number. Returns the newest number that was dropped; 0: none was. */
uint64_t filter_table_forget(struct filter_table *table, uint64_t until);

/* The hash of a simple filter; 0: the filter is not simple. *prefix_length 0: the filter is no
 * prefix; *tag_bit -1: it is no surrogate key. */
uint64_t filter_hash(const struct object_filter *filter, size_t *prefix_length, int *tag_bit);
/* Adds an event whose filter is known only by the results of filter_hash. */
void filter_table_add_hash(struct filter_table *table, uint64_t hash, size_t prefix_length,
                           int tag_bit, enum purge_action action, uint64_t number,
                           uint64_t keep_after);

#endif
