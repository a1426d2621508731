/*
 * A call of a page about the cache: its arguments, and the answers that such pages have in common.
 *
 *     if (!cache_call_take_stored(call, &name) ||
 *         !cache_call_take_number(call, "seconds", 0, INT32_MAX, &seconds))
 *         return;                                        an answer has been made
 *
 * Threads: those of the admin plane: purges from any, all else one at a time (admin.c).
 */
#ifndef RETORT_ADMIN_CACHE_CALL_H
#define RETORT_ADMIN_CACHE_CALL_H

#include "admin/page.h"
#include "base/arena.h"
#include "cache/content.h"

struct cache_call {
    struct page *page;
    const struct admin_calls *calls;
    const struct page_request *request;
    struct cache *cache;
    struct disk *disk;   /* NULL: there is none */
    struct arena *arena; /* until the answer has been made */
};

/* NULL: it is not there, or empty. */
const char *cache_call_argument(const struct cache_call *call, const char *name);
/* It is there, and not "no" or "0". */
bool cache_call_is_set(const struct cache_call *call, const char *name);
/* As requests are normalised; the caller frees it. NULL: no URL. */
char *cache_call_normalised(const char *text, size_t *length);
/* The same of the beginning of URLs; its last segment is only the beginning of one, so that "/a/.."
 * stands for "/a/..b" too and stays. */
char *cache_call_normalised_prefix(const char *text, size_t *length);
/* A host as it stands in normalised URLs, in the call's arena; what is none stays as it is. */
struct slice cache_call_host(const struct cache_call *call, const char *text);
/* As the policies have it now; a reload may have left objects under other names. */
struct cache_name cache_call_name_of(const struct cache_call *call, struct slice url);

/* False: an answer has been made. */
/* Without a number: `otherwise`. */
bool cache_call_take_number(const struct cache_call *call, const char *name, uint64_t otherwise,
                            uint64_t most, uint64_t *number);
/* The caller frees it. */
bool cache_call_take_url(const struct cache_call *call, char **url, size_t *length);
bool cache_call_take_name(const struct cache_call *call, struct cache_name *name);
/* With the variants of that URL in memory, those from disk too. */
bool cache_call_take_stored(const struct cache_call *call, struct cache_name *name);

/* What was changed in memory, as it is now. */
void cache_call_keep_on_disk(const struct cache_call *call, const struct cache_name *name);

/* {what: count} */
void cache_call_answer_count(const struct cache_call *call, const char *what, uint64_t count);
void cache_call_not_stored(const struct cache_call *call);
/* JSON carries UTF-8 only, heads any bytes. */
json_t *cache_call_text(struct slice text);

#endif
