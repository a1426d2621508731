/*
 * One rule of a filter: parsed, and matched against a URL by itself.
 *
 *     struct rule rule;
 *     switch (rule_parse(&rule, line)) {          slices of the rule point into `line`,
 *     case RULE_GOOD: ...                         which it may change to lower case
 *
 * Threads: values. See filter.h for the language.
 */
#ifndef RETORT_ADREMOVER_RULE_H
#define RETORT_ADREMOVER_RULE_H

#include "adremover/filter.h"

enum rule_parsed { RULE_GOOD, RULE_NONE, RULE_UNSUPPORTED, RULE_BAD };

enum rule_fit { RULE_MISSES, RULE_FITS, RULE_UNKNOWN };

struct rule {
    const char *pattern;
    uint32_t length;
    uint32_t next;       /* in its chain of the index */
    const char *domains; /* of domain=, with "|" between; NULL: any */
    uint16_t domains_length;
    uint16_t types;
    unsigned char party; /* enum filter_party; UNKNOWN: any */
    bool exception : 1, important : 1, match_case : 1;
    bool at_start : 1, at_end : 1, at_host : 1;
    bool whole_host : 1; /* the pattern is a host: it and all below */
    bool exact_host : 1; /* ... and it alone */
};

enum rule_parsed rule_parse(struct rule *rule, char *line, size_t length);
/* Does the rule fit the request, when its host was found in the table or its pattern matches? */
enum rule_fit rule_fits(const struct rule *rule, const struct filter_request *request);
bool rule_pattern_matches(const struct rule *rule, const struct filter_request *request);

/* What a word of a URL or a pattern consists of, for the index. */
static inline bool rule_is_word(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '%';
}

#endif
