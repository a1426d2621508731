/*
 * One rule of a filter: read from a line, and held against a request by itself. See filter.h for
 * the language.
 *
 *     struct rule rule;
 *     struct rule_reading reading = {.keep = keep, .keeper = filter};
 *     switch (rule_parse(&rule, &reading, line)) {
 *     case RULE_GOOD: ...             it points at copies that `keep` made
 *     case RULE_UNSUPPORTED: ...      reading.option is the name of the option that is not known
 *     case RULE_NONE, RULE_COSMETIC, RULE_BAD:
 *     }
 *     while (reading.more.length > 0): again with the same line
 *     rule_release(&rule);            what `extra` holds
 *
 * Matching asks in this order, the cheap before the dear: types and method, pattern, the rest.
 *
 * Threads: values; matching reads only. Bad lines are told apart, never asserted on.
 */
#ifndef RETORT_ADREMOVER_RULE_H
#define RETORT_ADREMOVER_RULE_H

#include "adremover/domain_set.h"
#include "adremover/regex.h"

enum rule_parsed { RULE_GOOD, RULE_NONE, RULE_COSMETIC, RULE_UNSUPPORTED, RULE_BAD };

enum rule_fit { RULE_MISSES, RULE_FITS, RULE_UNKNOWN };

enum { RULE_LINE_MAX = 32000 };

/* What the rule does when it matches. */
enum rule_action {
    RULE_BLOCKS,    /* or, with `exception`, lets pass */
    RULE_REDIRECTS, /* names a resource for what others block (redirect-rule) */
    RULE_BLOCKS_TO, /* both (redirect) */
    RULE_STRIPS,    /* takes parameters off the URL (removeparam) */
};

/* What few rules have. */
struct rule_extra {
    struct domain_set *pages;  /* domain= */
    struct domain_set *hosts;  /* to=, denyallow= */
    struct regex *regex;       /* the pattern */
    struct regex *param_regex; /* removeparam=/.../ */
    struct slice value;        /* of redirect or removeparam */
    bool value_inverse;        /* removeparam=~... */
};

struct rule {
    const char *pattern; /* in lower case but with match_case; for a regex what is between "/" */
    const char *line;    /* as it stands in the list */
    struct rule_extra *extra; /* or NULL */
    uint16_t length, line_length;
    uint16_t host_length; /* at_host: of the pattern, what is a host to its last label; or 0 */
    uint16_t types;
    uint8_t methods; /* 0: any */
    uint8_t party;   /* enum filter_party; UNKNOWN: any */
    uint8_t action;  /* enum rule_action */
    bool exception : 1, important : 1, match_case : 1, bad_filter : 1;
    bool at_start : 1, at_end : 1, at_host : 1;
    bool plain : 1;      /* neither "*" nor "^" in the pattern */
    bool whole_host : 1; /* the pattern is a host: it and all below */
    bool exact_host : 1; /* ... and it alone */
};

/* How texts that a rule needs are kept, and why a line is no rule. */
struct rule_reading {
    char *(*keep)(void *keeper, const char *bytes, size_t length); /* a copy, with a NUL behind */
    void *keeper;
    struct slice option; /* RULE_UNSUPPORTED: in the line */
    struct slice more;   /* names in a line of a hosts file that wait for another call */
};

enum rule_parsed rule_parse(struct rule *rule, struct rule_reading *reading, struct slice line);
/* A copy of the text that the rule may point at. */
struct slice rule_keep(struct rule_reading *reading, struct slice text);
/* What few rules have; made when it is first asked for. */
struct rule_extra *rule_extra_of(struct rule *rule);
void rule_release(struct rule *rule);
/* Equal for rules that say the same: what badfilter asks for. */
uint64_t rule_digest(const struct rule *rule);

/* Does the pattern match with its first byte at `at`? What is anchored must be there. */
bool rule_matches_at(const struct rule *rule, const struct filter_request *request, size_t at);
/* ... or anywhere? */
bool rule_matches(const struct rule *rule, const struct filter_request *request);
/* Types and method: RULE_UNKNOWN when it would be so for some of the types it may be. */
enum rule_fit rule_fits_kind(const struct rule *rule, const struct filter_request *request);
/* Party and hosts. */
enum rule_fit rule_fits_place(const struct rule *rule, struct filter_request *request);

#endif
