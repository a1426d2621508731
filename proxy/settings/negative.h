/*
 * How long errors are kept that do not say so themselves: rules of status codes and a time.
 *
 *     char *rules[] = {"404 410 1m", "5xx 5s", NULL};
 *     uint64_t milliseconds;
 *     if (negative_ttl_find(rules, 503, &milliseconds)) ...            5000
 *
 * The first rule for a status counts. "4xx" and "5xx" stand for all of them; a rule that names none
 * is for 404, 410 and all from 500 on: those that tell of the resource or its server, not of who
 * asked. "none" is for none: in a policy it covers what else would count.
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
/* `rules` end with NULL, and have been checked; NULL: none. */
bool negative_ttl_find(char *const *rules, unsigned status, uint64_t *milliseconds);

#endif
