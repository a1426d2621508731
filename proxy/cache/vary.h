/*
 * Secondary keys (RFC 9111 §4.1): what a stored variant was selected by.
 *
 *     if (!vary_usable(&response)) ...                                 not to be stored
 *     size_t length = vary_write(&request, &response, NULL, 0);         measures
 *     vary_write(&request, &response, out, length);
 *     if (vary_matches(stored, &request)) ...
 *
 * A line for each field that Vary names, "name:value\n". Values are normalised so that requests
 * which mean the same select the same variant: field lines are joined, blanks around commas and
 * empty elements dropped; Accept-Language and Accept-Encoding are lists without order or case.
 *
 * Threads: pure functions.
 */
#ifndef RETORT_CACHE_VARY_H
#define RETORT_CACHE_VARY_H

#include "http/head.h"

/* False where no request can be known to select the response: Vary has "*", or a member that is not
 * the name of a field. */
bool vary_usable(const struct http_head *response);
/* Writes what fits; returns the whole length. */
size_t vary_write(const struct http_head *request, const struct http_head *response, char *out,
                  size_t capacity);
bool vary_matches(struct slice stored, const struct http_head *request);
/* False: no request can match both, since they want different values of the same field. */
bool vary_overlaps(struct slice a, struct slice b);

#endif
