/*
 * Parses Cache-Control of a request or a response (RFC 9111 §5.2) once into flags and seconds.
 *
 *     struct cache_control control;
 *     cache_control_parse(&control, &head);
 *     if (control.no_store) ...
 *
 * Unknown directives are ignored. A malformed number counts as 0, because stale is the safe
 * reading. The first of duplicates counts. A malformed directive may hide another one, for example
 * behind a quote that is never closed: it sets no_store, and in a request also no_cache.
 * `no-cache="field"` and `private="field"` are taken as if unqualified. A request without
 * Cache-Control but with "Pragma: no-cache" has no_cache set (§5.4).
 */
#ifndef RETORT_CACHE_CACHE_CONTROL_H
#define RETORT_CACHE_CACHE_CONTROL_H

#include "http/head.h"

struct cache_control {
    bool no_store, no_cache, private, public, must_revalidate, proxy_revalidate, must_understand,
        only_if_cached, no_transform, immutable;
    bool max_stale_any;        /* max-stale without a number */
    int64_t max_age, s_maxage; /* seconds; -1: not stated */
    int64_t min_fresh, max_stale, stale_while_revalidate, stale_if_error;
};

void cache_control_parse(struct cache_control *control, const struct http_head *head);

/* Parses the first field of `names` (ends with NULL) that is there and well formed, for caches that
 * are addressed by name (RFC 9213 §2.2). The field is a dictionary of Structured Fields, in which
 * the last of duplicates counts. A field that does not parse, or that has a value of the wrong type
 * for its directive, is ignored as a whole. Surrogate-Control is a list like Cache-Control. False:
 * there is no such field. */
bool cache_control_parse_targeted(struct cache_control *control, const struct http_head *head,
                                  char *const *names);

#endif
