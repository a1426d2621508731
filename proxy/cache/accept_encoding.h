/*
 * Accept-Encoding reduced to what makes a difference: the codings that origins are known to use.
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
 * Clients that take the same of these codings send the same, so that they share a variant (RFC 9111
 * §4.1) and the origin is asked for just that. Which of them a client likes best is lost: it is the
 * origin that chooses. A client that refuses the unencoded response is left alone.
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
