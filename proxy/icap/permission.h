/*
 * A permission: how long a service's answer to REQMOD may be used again for an equal request, as
 * the answer's ICAP head says (RFC 3507 §5: the caching directives of HTTP, in the ICAP head).
 *
 *     int64_t seconds = icap_permission(&head, now);       0: not at all
 *
 * Nothing is guessed: without max-age, s-maxage or Expires there is none; and none with no-store,
 * no-cache, private or "Vary: *". An Age, and a Date in the past, are taken off.
 *
 * Threads: pure. Units: seconds, wall clock.
 */
#ifndef RETORT_ICAP_PERMISSION_H
#define RETORT_ICAP_PERMISSION_H

#include "http/head.h"

#include <time.h>

int64_t icap_permission(const struct http_head *head, time_t now);

#endif
