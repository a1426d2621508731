/*
 * A mark: which services saw a message, and under which tags (adapt/service_tag.h), in two numbers
 * that can be stored with what they made of it.
 *
 *     struct chain_tags mark;
 *     chain_tags_begin(&mark, services, count);        before they are asked
 *     chain_tags_take(&mark, &chain);                  when they have answered
 *     provenance.chain = chain_tags_chain(services, count), provenance.tag = chain_tags_tag(&mark);
 *
 *     if (chain_tags_are_old(services, count, provenance.tag)) ...    later
 *
 * `services` are all that might have been asked, whatever the response turned out to be, so that
 * they are known before it is there.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_CHAIN_TAGS_H
#define RETORT_ADAPT_CHAIN_TAGS_H

#include "adapt/chain.h"

struct chain_tags {
    unsigned count;
    struct adapter *services[ADAPT_CHAIN_MAX];
    uint64_t tags[ADAPT_CHAIN_MAX];
};

/* Notes these services with their present tags. */
void chain_tags_begin(struct chain_tags *mark, struct adapter *const *services, unsigned count);
/* Notes the services of the chain that were asked, with the tags under which they answered. */
void chain_tags_take(struct chain_tags *mark, const struct adapt_chain *chain);
/* One number for all the tags; 0: the tag of a service is not known. */
uint32_t chain_tags_tag(const struct chain_tags *mark);
/* Is one of these services another than when the tag was noted? Where that is not known, OPTIONS
 * are asked for, and it is not. */
bool chain_tags_are_old(struct adapter *const *services, unsigned count, uint32_t tag);
/* Never 0. */
uint32_t chain_tags_chain(struct adapter *const *services, unsigned count);

#endif
