/*
 * The key of a URL under a policy: what is stored is found by a URL whose query may have been
 * reduced to what matters, while the origin is still asked for the whole one.
 *
 *     struct cache_key key = cache_key_by_policy(url_text, policy);     policy NULL: of the URL
 *     struct cache_key key = cache_key_by_settings(url_text, settings, NULL);
 *
 * With query_drop = { "utm_*" } and query_sort, http://h/a?z=1&utm_source=x&b=2 has the key of
 * http://h/a?b=2&z=1. Values stay as they are, and parameters of one name stay in their order.
 *
 * Threads: pure functions. By policy, nothing is allocated.
 */
#ifndef RETORT_CACHE_KEY_H
#define RETORT_CACHE_KEY_H

#include "cache/object.h"
#include "settings/settings.h"

struct cache_key cache_key_by_policy(struct slice url, const struct cache_policy *policy);
/* The key under which a GET of that URL (normalised) by that client (NULL: one that no class knows)
 * is stored. */
struct cache_key cache_key_by_settings(struct slice url, const struct settings *settings,
                                       const struct address *client);

#endif
