/*
 * A memory cache for tests, and objects of any size in it.
 *
 *     start_cache();
 *     put_cached(SLICE("http://a.org/"), 1000);
 *     put_cached_with(url, "Cache-Tag", "one", "red", 10);   for requests with Kind: red
 *     ck_assert(is_found(SLICE("http://a.org/")));
 *     stop_cache();                                       all must be accounted for when it goes
 *
 * Threads: any, once it has started.
 */
#ifndef RETORT_TESTS_UNIT_PROXY_STORE_BENCH_H
#define RETORT_TESTS_UNIT_PROXY_STORE_BENCH_H

#include "cache/removal.h"
#include "suites.h"

enum { LIMIT = 1 << 20 };

/* A pointer to it. */
#define NAME_OF(url) ((const struct cache_name[]){cache_name_of(url)})

extern struct cache *the_cache;
/* How many variants of a name what is put may leave; 0: any number. */
extern unsigned variants_most;

void start_cache(void);
/* Everything that went in is accounted for when it goes. */
void stop_cache(void);
struct cache_statistics counted(void);

struct slice cached_url(unsigned number, char *text, size_t capacity);
void plain_head(struct http_head *head, unsigned status);

void put_cached(struct slice url, size_t size);
/* `name` and `value` of a field may be NULL: a response without such a field; `kind`: one that does
 * not vary. */
void put_cached_with(struct slice url, const char *name, const char *value, const char *kind,
                     size_t size);
/* False: it was not stored. */
bool put_cached_since(const struct cache_moment *since, struct slice url, const char *name,
                      const char *value, const char *kind, size_t size);

struct object *look_up(struct slice url, const char *kind);
bool is_found(struct slice url);
/* Without a visit. */
bool is_cached(struct slice url);

#endif
