/*
 * Freshness of errors that do not state it themselves: rules of status codes and a time.
 *
 *     char *rules[] = {"404 410 1m", "5xx 5s", NULL};
 *     uint64_t milliseconds;
 *     if (negative_ttl_find(rules, 503, &milliseconds)) ...            5000
 *
 * The first rule that names a status applies. "4xx" and "5xx" stand for their whole class. A rule
 * without codes applies to 404, 410 and all statuses from 500, because these depend on the resource
 * or its server and not on the client. "none" applies to no status; in a policy it hides the rules
 * of later policies and of the cache.
 *
 * Threads: pure functions. Units: milliseconds.
 */
#ifndef RETORT_SETTINGS_NEGATIVE_H
#define RETORT_SETTINGS_NEGATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether one rule is well formed. */
bool negative_ttl_check(const char *rule, char *error, size_t error_size);
/* `rules` ends with NULL and has been checked; NULL means no rules. */
bool negative_ttl_find(char *const *rules, unsigned status, uint64_t *milliseconds);

#endif
