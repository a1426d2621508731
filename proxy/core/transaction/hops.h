/*
 * Hops: what a message says of the proxies that it has passed, and how many more it may pass
 * (RFC 9110 §7.6).
 *
 *     if (http_head_has(request, HTTP_VIA) && hops_contain(request, name))
 *         ... a forwarding loop ...
 *     hops_end(request);
 *     if (!hops_count_down(request, arena))
 *         ... the request must not be forwarded ...
 *     hops_add(response, SLICE("1.1"), name, arena);
 *
 * Called for each request before it is forwarded, and for each message that is.
 *
 * Threads: pure functions on heads. Memory: the arena, into which the heads point afterwards. Errors:
 * a Via that is malformed contains no name.
 */
#ifndef RETORT_TRANSACTION_HOPS_H
#define RETORT_TRANSACTION_HOPS_H

#include "http/head.h"

/* Removes the fields of a request that Connection says are for this proxy alone. What is chosen by a
 * field, a stored variant for example, is so chosen by what the origin gets. */
void hops_end(struct http_head *request);
/* Has the message passed a proxy of that name? The Via fields list the names. */
bool hops_contain(const struct http_head *head, struct slice name);
/* Lowers Max-Forwards by one. False: it is 0 already, or no number. */
bool hops_count_down(struct http_head *request, struct arena *arena);
/* Adds a proxy to Via, with the version of HTTP in which it got the message: "1.1". */
void hops_add(struct http_head *head, struct slice version, struct slice name, struct arena *arena);

#endif
