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
#ifndef RETORT_CACHE_ACCEPT_ENCODING_H
#define RETORT_CACHE_ACCEPT_ENCODING_H

#include "http/head.h"

enum { ACCEPT_ENCODING_MAX = 512 };

/* `codings` end with NULL; the slice lies in `text`. */
struct slice accept_encoding_reduce(const struct http_head *request, char *const *codings,
                                    char text[ACCEPT_ENCODING_MAX]);

#endif
