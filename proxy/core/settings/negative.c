#include "settings/negative.h"

#include "base/failure.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

/* Takes the next word without the blanks around it. Returns false when there is none. */
static bool negative_next_word(const char **at, struct slice *word) {
    *at += strspn(*at, " \t");
    *word = slice_make(*at, strcspn(*at, " \t"));
    *at += word->length;
    return word->length > 0;
}

/* 0: no status; 4 and 5 stand for their classes. */
static unsigned parse_status(struct slice word) {
    uint64_t status;
    if (slice_equal_nocase(word, SLICE("4xx")))
        return 4;
    if (slice_equal_nocase(word, SLICE("5xx")))
        return 5;
    if (!slice_to_uint64(word, &status) || status < 400 || status > 599)
        return 0;
    return (unsigned)status;
}

static bool usual(unsigned status) {
    return status == 404 || status == 410 || status >= 500;
}

/* Parses a whole rule; `matches` says whether it applies to the status. Returns false when the
 * rule is malformed. */
static bool read_rule(const char *rule, unsigned status, bool *matches, uint64_t *milliseconds) {
    struct slice word, next;
    unsigned count = 0;
    *matches = false;
    if (strcmp(rule, "none") == 0)
        return true;
    if (!negative_next_word(&rule, &word))
        return false;
    for (; negative_next_word(&rule, &next); word = next, count++) {
        unsigned named = parse_status(word);
        if (named == 0)
            return false;
        if (named == status || named == status / 100)
            *matches = true;
    }
    if (count == 0)
        *matches = usual(status);
    return units_read_time(word, 0, milliseconds);
}

bool negative_ttl_check(const char *rule, char *error, size_t error_size) {
    bool matches;
    uint64_t milliseconds;
    if (read_rule(rule, 0, &matches, &milliseconds))
        return true;
    return failure(error, error_size,
                   "is not a time, optionally with status codes from 400 to 599 before it: write "
                   "\"30s\", \"404 410 1m\" or \"5xx 5s\"");
}

bool negative_ttl_find(char *const *rules, unsigned status, uint64_t *milliseconds) {
    bool matches;
    for (; rules != NULL && *rules != NULL; rules++)
        if (read_rule(*rules, status, &matches, milliseconds) && matches)
            return true;
    return false;
}
