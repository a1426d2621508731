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

/*
 * Names of stored objects, as whoever manages the content of the cache writes them: URLs, prefixes of URLs, and
 * hosts, normalised as those of requests are. After a reload, older objects may have other names.
 *
 *     struct slice url = content_url(SLICE("HTTP://A.org/%7ex"), &arena);     "http://a.org/~x"
 *     if (url.base == NULL) ...                                              this is not a URL
 */

struct settings;

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
