/*
 * Secondary keys (RFC 9111 §4.1): the request fields that a stored variant was selected by. Objects
 * keep such a key and compare it (cache/object.h).
 *
 *     if (!vary_usable(&response)) ...                                 not to be stored
 *     size_t length = vary_write(&request, &response, NULL, 0);         measures
 *     vary_write(&request, &response, out, length);
 *     if (vary_matches(stored, &request)) ...
 *
 * A secondary key has a line "name:value\n" for each field that Vary names. Values are normalised
 * so that requests with the same meaning select the same variant: field lines are joined, and
 * blanks around commas and empty elements are dropped. Accept-Language and Accept-Encoding count as
 * lists without order or case.
 *
 * Threads: pure functions.
 */
#ifndef RETORT_CACHE_VARY_H
#define RETORT_CACHE_VARY_H

#include "http/head.h"

/* More names than this select nothing that anybody asks for, and each costs time at every look-up. */
enum { VARY_NAMES = 128 };

/* False: it can't be known which requests select the response, because Vary has "*", a member that is
 * not the name of a field, or more than VARY_NAMES members. */
bool vary_usable(const struct http_head *response);
/* Writes as much as fits, and returns the whole length. */
size_t vary_write(const struct http_head *request, const struct http_head *response, char *out,
                  size_t capacity);
bool vary_matches(struct slice stored, const struct http_head *request);
/* False: no request can match both, since they want different values of the same field. */
bool vary_overlaps(struct slice a, struct slice b);

#endif
