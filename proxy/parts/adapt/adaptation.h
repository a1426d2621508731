/*
 * What the part keeps for a transaction: what each of its steps has begun.
 *
 *     if (adaptation_of(transaction)->respmod == NULL)
 *         adaptation_begin(transaction)->respmod = respmod;
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_ADAPT_ADAPTATION_H
#define RETORT_ADAPT_ADAPTATION_H

#include "adapt/set.h"

struct reqmod;
struct respmod;
struct postcache;

/* NULL where no service is asked. */
struct adaptation {
    struct adapting adapting;       /* for the core */
    struct adapt_opt_out *opt_outs; /* modules of services that want to hear no more of it */
    struct reqmod *reqmod, *reqmod_postcache;
    struct respmod *respmod;
    struct postcache *respmod_postcache;
};

extern const struct adaptation adaptation_of_none;
extern const struct adapting_class adaptation_class;

static inline const struct adaptation *adaptation_of(const struct transaction *transaction) {
    return transaction->adapting != NULL ? (const struct adaptation *)(void *)transaction->adapting
                                         : &adaptation_of_none;
}
/* The same, where a step has begun something. */
static inline struct adaptation *adaptation_begun(const struct transaction *transaction) {
    return (struct adaptation *)(void *)transaction->adapting;
}
/* May services behind the cache want the response, whatever it will turn out to be? */
bool adaptation_is_behind_cache(struct transaction *transaction);
void adaptation_make(struct transaction *transaction);
/* The same, to be written. */
static inline struct adaptation *adaptation_begin(struct transaction *transaction) {
    if (transaction->adapting == NULL)
        adaptation_make(transaction);
    return adaptation_begun(transaction);
}

#endif
