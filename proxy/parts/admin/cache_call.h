/*
 * A call of a page for the cache: its arguments, and the answers that such pages share.
 *
 *     if (!cache_call_take_name(call, &name) ||
 *         !cache_call_take_number(call, "seconds", 0, INT32_MAX, &seconds))
 *         return;                                        an answer has been made
 *
 * Threads: any of the admin plane.
 */
#ifndef RETORT_ADMIN_CACHE_CALL_H
#define RETORT_ADMIN_CACHE_CALL_H

#include "admin/page.h"
#include "base/arena.h"
#include "cache/stored.h"

struct cache_call {
    struct page *page;
    const struct admin_calls *calls;
    const struct page_request *request;
    struct cache *cache;
    struct second_level *second_level; /* NULL: there is none */
    struct arena *arena;               /* until the answer has been made */
};

void cache_call_make(void (*make)(const struct cache_call *call), struct page *page,
                     const struct admin_calls *calls, const struct page_request *request);

/* Returns NULL when the argument is missing or empty. */
const char *cache_call_argument(const struct cache_call *call, const char *name);
/* Returns true when the argument is set to anything but "no" and "0". */
bool cache_call_is_set(const struct cache_call *call, const char *name);
/* The name of a URL by the current policies. After a reload, older objects may have other names. */
struct cache_name cache_call_name_of(const struct cache_call *call, struct slice url);

/* False: an answer has been made. */
/* `number` is `otherwise` when the argument is missing. */
bool cache_call_take_number(const struct cache_call *call, const char *name, uint64_t otherwise,
                            uint64_t most, uint64_t *number);
/* Normalised, in the call's arena. */
bool cache_call_take_url(const struct cache_call *call, struct slice *url);
bool cache_call_take_name(const struct cache_call *call, struct cache_name *name);

struct content_store cache_call_store(const struct cache_call *call);

/* {what: count} */
void cache_call_answer_count(const struct cache_call *call, const char *what, uint64_t count);
/* The same, or an error, by the result of a change. */
void cache_call_answer_change(const struct cache_call *call, enum stored_result result,
                              const char *what, uint64_t count);
void cache_call_not_stored(const struct cache_call *call);
/* JSON can contain only UTF-8, but heads can contain any bytes. */
json_t *cache_call_text(struct slice text);

#endif
