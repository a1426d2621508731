/*
 * Names of stored objects, as whoever manages the content of the cache writes them: URLs, prefixes of
 * URLs, and hosts, normalised as those of requests are.
 *
 *     struct slice url = content_url(SLICE("HTTP://A.org/%7ex"), &arena);     "http://a.org/~x"
 *     if (url.base == NULL) ...                                              this is not a URL
 *     struct cache_name name = content_name(url, settings, &arena);
 *
 * The name of a URL depends on the policies (cache/key.h). After a reload, older objects may have
 * other names.
 *
 * Threads: pure functions. Memory: the arena's.
 */
#ifndef RETORT_CACHE_URL_H
#define RETORT_CACHE_URL_H

#include "base/arena.h"
#include "cache/name.h"

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
