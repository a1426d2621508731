/*
 * A permission: how long a service's answer to REQMOD may be used again for an equal request, as
 * the answer's ICAP head says (RFC 3507 §5: the caching directives of HTTP, in the ICAP head).
 *
 *     int64_t seconds = icap_permission(&head, now);       0: not at all
 *
 * Nothing is guessed: without max-age, s-maxage or Expires there is none; and none with no-store,
 * no-cache, private or "Vary: *". An Age, and a Date in the past, are taken off.
 *
 *     "Cache-Control: max-age=60", "Age: 10"      50
 *
 * Called when a service has answered a request; what comes of it is kept by adapt/verdicts.h. Directives
 * mean what they mean in RFC 9111 §5.2.2.
 *
 * Threads: pure. Units: seconds, wall clock. Errors: a value that is malformed permits nothing.
 */
#ifndef RETORT_ICAP_PERMISSION_H
#define RETORT_ICAP_PERMISSION_H

#include "http/head.h"

#include <time.h>

/* Seconds from `now` on; 0: not at all. */
int64_t icap_permission(const struct http_head *head, time_t now);

#endif
