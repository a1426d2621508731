/*
 * The hosts of an option such as domain=news.example|~sport.news.example|shop.*|/^cdn\d+\./. The
 * set tells whether a host fits the option, by its own entry or by the entry of a host above it.
 *
 *     struct domain_set *set = domain_set_parse(SLICE("a.example|~b.a.example"), false);
 *     domain_set_fits(set, host, &request->page_labels, NULL)
 *     domain_set_free(&set);
 *
 * The longest host in the set that fits decides. If no host fits, the first regular expression that
 * matches decides. If none matches either, the answer is yes only when all hosts in the set have
 * "~". The set keeps the hosts as sorted hashes (hash.h). Threads: read-only after parsing.
 */
#ifndef RETORT_ADREMOVER_DOMAIN_SET_H
#define RETORT_ADREMOVER_DOMAIN_SET_H

#include "adremover/regex.h"
#include "adremover/request.h"

enum { DOMAIN_REGEXES_MAX = 8 };

struct domain_regex {
    struct regex *regex;
    uint64_t digest; /* of its text */
    bool negative;
};

struct domain_set {
    unsigned count, regex_count;
    bool any_positive, any_entity;
    struct domain_regex regexes[DOMAIN_REGEXES_MAX];
    uint64_t hashes[]; /* the lowest bit says "~" */
};

/* NULL when the text has no entry, a bad host or regular expression, or too many regular
 * expressions. With `inverse` every entry means the contrary of what it says (denyallow). */
struct domain_set *domain_set_parse(struct slice text, bool inverse);
void domain_set_free(struct domain_set **setp);
/* `host` is the first of the labels, in lower case. `entities` may be NULL. */
bool domain_set_fits(const struct domain_set *set, struct slice host,
                     const struct filter_labels *labels, const struct filter_labels *entities);
uint64_t domain_set_digest(const struct domain_set *set);

#endif
