/*
 * The hosts of an option such as domain=news.example|~sport.news.example|shop.*: does a host, with
 * the hosts above it, fit?
 *
 *     struct domain_set *set = domain_set_parse(SLICE("a.example|~b.a.example"), false);
 *     domain_set_fits(set, &request->page_labels, NULL)
 *
 * The longest entry that fits decides; where none does, a set of nothing but "~" says yes. Entries
 * are kept as hashes (hash.h), sorted. Threads: read-only after parsing; to be freed with free().
 */
#ifndef RETORT_ADREMOVER_DOMAIN_SET_H
#define RETORT_ADREMOVER_DOMAIN_SET_H

#include "adremover/request.h"

struct domain_set {
    unsigned count;
    bool any_positive, any_entity;
    uint64_t hashes[]; /* the lowest bit says "~" */
};

/* NULL when there is no entry in it, or one that is a regular expression. With `inverse` every
 * entry is the contrary of what it says (denyallow). */
struct domain_set *domain_set_parse(struct slice text, bool inverse);
/* `entities` may be NULL. */
bool domain_set_fits(const struct domain_set *set, const struct filter_labels *labels,
                     const struct filter_labels *entities);
uint64_t domain_set_digest(const struct domain_set *set);

#endif
