/*
 * A call of a page for the cache: its arguments, and the answers that such pages share.
 *
 *     if (!cache_call_take_stored(call, &name) ||
 *         !cache_call_take_number(call, "seconds", 0, INT32_MAX, &seconds))
 *         return;                                        an answer has been made
 *
 * Threads: those of the admin plane. Purges run in any of them, all other pages one at a time
 * (admin.c).
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

/* Returns NULL when the argument is missing or empty. */
const char *cache_call_argument(const struct cache_call *call, const char *name);
/* Returns true when the argument is set to anything but "no" and "0". */
bool cache_call_is_set(const struct cache_call *call, const char *name);
/* Normalises a URL as in requests. The caller frees it. Returns NULL when the text is not a URL. */
char *cache_call_normalised(const char *text, size_t *length);
/* Does the same for a prefix of URLs. Its last segment may be incomplete, so "/a/.." also stands
 * for "/a/..b" and is not resolved. */
char *cache_call_normalised_prefix(const char *text, size_t *length);
/* A host as in normalised URLs, in the call's arena. A text that is not a host does not change. */
struct slice cache_call_host(const struct cache_call *call, const char *text);
/* The name of a URL by the current policies. After a reload, older objects may have other names. */
struct cache_name cache_call_name_of(const struct cache_call *call, struct slice url);

/* False: an answer has been made. */
/* `number` is `otherwise` when the argument is missing. */
bool cache_call_take_number(const struct cache_call *call, const char *name, uint64_t otherwise,
                            uint64_t most, uint64_t *number);
/* The caller frees it. */
bool cache_call_take_url(const struct cache_call *call, char **url, size_t *length);
bool cache_call_take_name(const struct cache_call *call, struct cache_name *name);
/* Returns the variants of that URL in memory, after those on disk have been loaded. */
bool cache_call_take_stored(const struct cache_call *call, struct cache_name *name);

/* Writes the changed object to disk as it is now in memory. */
void cache_call_keep_on_disk(const struct cache_call *call, const struct cache_name *name);

/* {what: count} */
void cache_call_answer_count(const struct cache_call *call, const char *what, uint64_t count);
void cache_call_not_stored(const struct cache_call *call);
/* JSON can contain only UTF-8, but heads can contain any bytes. */
json_t *cache_call_text(struct slice text);

#endif
