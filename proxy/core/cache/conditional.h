/*
 * Conditional requests (RFC 9110 §13): is the client's copy still good? The step that delivers a
 * stored response asks (transaction/steps/deliver.c).
 *
 *     if (conditional_not_modified(&request, etag, last_modified)) -> 304
 *
 * If-None-Match is compared weakly. If-Modified-Since does not count when the request has an
 * If-None-Match (§13.2.2).
 */
#ifndef RETORT_CACHE_CONDITIONAL_H
#define RETORT_CACHE_CONDITIONAL_H

#include "http/head.h"

#include <time.h>

/* etag.base NULL: none. last_modified 0: none. */
bool conditional_not_modified(const struct http_head *request, struct slice etag,
                              time_t last_modified);
/* Does the request have any condition that a cache answers by itself? */
bool conditional_present(const struct http_head *request);
/* The fields that a 304 repeats (§15.4.5). */
bool conditional_kept_in_304(enum http_name id);

#endif
