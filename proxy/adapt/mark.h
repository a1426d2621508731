/*
 * A mark: which services saw a message, and under which tags (adapt/service_tag.h), in two numbers
 * that can be stored with what they made of it.
 *
 *     struct adapt_mark mark;
 *     adapt_mark_begin(&mark, services, count);        before they are asked
 *     adapt_mark_take(&mark, &chain);                  when they have answered
 *     making.chain = adapt_mark_chain(services, count), making.tag = adapt_mark_tag(&mark);
 *
 *     if (adapt_mark_is_old(services, count, making.tag)) ...    later
 *
 * `services` are all that might have been asked, whatever the response turned out to be, so that
 * they are known before it is there.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_MARK_H
#define RETORT_ADAPT_MARK_H

#include "adapt/chain.h"

struct adapt_mark {
    unsigned count;
    struct adapter *services[ADAPT_CHAIN_MAX];
    uint64_t tags[ADAPT_CHAIN_MAX];
};

/* Notes these services with their present tags. */
void adapt_mark_begin(struct adapt_mark *mark, struct adapter *const *services, unsigned count);
/* Notes the services of the chain that were asked, with the tags under which they answered. */
void adapt_mark_take(struct adapt_mark *mark, const struct adapt_chain *chain);
/* One number for all the tags; 0: the tag of a service is not known. */
uint32_t adapt_mark_tag(const struct adapt_mark *mark);
/* Is one of these services another than when the tag was noted? Where that is not known, OPTIONS
 * are asked for, and it is not. */
bool adapt_mark_is_old(struct adapter *const *services, unsigned count, uint32_t tag);
/* Never 0. */
uint32_t adapt_mark_chain(struct adapter *const *services, unsigned count);

#endif
