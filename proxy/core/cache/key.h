/*
 * Makes the URL under which a response is stored and found. It is the URL of the request without
 * the parts of the query that do not matter according to the policies.
 *
 *     struct slice url = cache_url_by_policy(url_text, policy, arena);  policy NULL: the URL itself
 *     struct cache_name name = cache_name_of(url);
 *
 * With query_drop = { "utm_*" } and query_sort, http://h/a?z=1&utm_source=x&b=2 becomes
 * http://h/a?b=2&z=1. Values stay as they are, and parameters of one name stay in their order.
 *
 * Threads: pure functions. The result is the URL itself, its beginning, or in the arena.
 */
#ifndef RETORT_CACHE_KEY_H
#define RETORT_CACHE_KEY_H

#include "base/arena.h"
#include "cache/name.h"
#include "settings/settings.h"

struct slice cache_url_by_policy(struct slice url, const struct cache_policy *policy,
                                 struct arena *arena);
/* The URL under which a GET of `url` (normalised) by `client` is stored. client NULL: a client that
 * no class knows. */
struct slice cache_url_by_settings(struct slice url, const struct settings *settings,
                                   const struct address *client, struct arena *arena);

#endif
