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

/*
 * Reduces Accept-Encoding to the codings that origins are known to use. The look-up of a request
 * calls it (transaction/steps/lookup.c).
 *
 *     char *codings[] = {"br", "gzip", NULL}, text[ACCEPT_ENCODING_MAX];
 *     struct slice value = accept_encoding_reduce(&request, codings, text);
 *
 *     "gzip, deflate, br"            "br, gzip"
 *     "br;q=1.0, gzip;q=0.8"         "br, gzip"
 *     "gzip;q=0, *"                  "br"
 *     "deflate", "", none            "identity"
 *     "identity;q=0, deflate"        not reduced: base NULL
 *
 * Two clients that accept the same of these codings get the same reduced value. So they share a
 * variant (RFC 9111 §4.1), and the origin is asked for that value. The reduced value does not tell
 * which coding a client likes best: the origin chooses. The field is not reduced when the client
 * refuses the unencoded response.
 *
 * Threads: pure functions.
 */

enum { ACCEPT_ENCODING_MAX = 512 };

/* `codings` end with NULL; the slice lies in `text`. */
struct slice accept_encoding_reduce(const struct http_head *request, char *const *codings,
                                    char text[ACCEPT_ENCODING_MAX]);

#endif
