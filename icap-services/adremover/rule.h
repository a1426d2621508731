/*
 * One rule of a filter: reads it from a line of a list, and matches it against a request. See
 * filter.h for the language of the rules.
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
 * The checks that cost little come first: types and method, then the pattern, then the rest.
 *
 * Threads: values; matching reads only. Errors: a bad line gives RULE_BAD, and no assertion fails.
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

/* The parts of a rule that few rules have. */
struct rule_extra {
    struct domain_set *pages;  /* domain= */
    struct domain_set *hosts;  /* to=, denyallow= */
    struct regex *regex;       /* the pattern */
    struct regex *param_regex; /* removeparam=/.../ */
    struct slice value;        /* of redirect or removeparam */
    bool value_inverse;        /* removeparam=~... */
};

struct rule {
    const char *pattern;      /* in lower case unless match_case; of a regex the text between "/" */
    const char *line;         /* as it stands in the list */
    struct rule_extra *extra; /* or NULL */
    uint16_t length, line_length;
    uint16_t host_length; /* at_host: so much of the pattern is a whole host; or 0 */
    uint16_t types;
    uint8_t methods; /* 0: any */
    uint8_t party;   /* enum filter_party; UNKNOWN: any */
    uint8_t action;  /* enum rule_action */
    bool exception : 1, important : 1, match_case : 1, bad_filter : 1;
    bool at_start : 1, at_end : 1, at_host : 1;
    bool plain : 1;      /* neither "*" nor "^" in the pattern */
    bool whole_host : 1; /* the pattern is a host: the rule is for it and all hosts below it */
    bool exact_host : 1; /* the pattern is a host: the rule is for it alone */
};

/* What rule_parse needs to keep the texts of a rule, and what it says about the line. */
struct rule_reading {
    char *(*keep)(void *keeper, const char *bytes, size_t length); /* a copy, with a NUL behind */
    void *keeper;
    struct slice option; /* RULE_UNSUPPORTED: the option's name, in the line */
    struct slice more;   /* names in a line of a hosts file that are left for the next call */
};

enum rule_parsed rule_parse(struct rule *rule, struct rule_reading *reading, struct slice line);
/* Makes a copy of the text, which the rule may point at. */
struct slice rule_keep(struct rule_reading *reading, struct slice text);
/* The extra parts of the rule; the first call makes them. */
struct rule_extra *rule_extra_of(struct rule *rule);
void rule_release(struct rule *rule);
/* A hash that is equal for rules that say the same. The option badfilter needs it. */
uint64_t rule_digest(const struct rule *rule);

/* Does the pattern match when its first byte is at `at`? An anchor of the pattern must fit too. */
bool rule_matches_at(const struct rule *rule, struct filter_request *request, size_t at);
/* Does the pattern match anywhere in the URL? */
bool rule_matches(const struct rule *rule, struct filter_request *request);
/* Do types and method fit? RULE_UNKNOWN when the rule fits only some of the types that the request
 * may have. */
enum rule_fit rule_fits_kind(const struct rule *rule, const struct filter_request *request);
/* Do the party and the hosts fit? */
enum rule_fit rule_fits_place(const struct rule *rule, struct filter_request *request);

#endif
