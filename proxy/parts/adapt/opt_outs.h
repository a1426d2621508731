/*
 * Opt-outs: the modules of services that want to hear no more of a transaction (service.h, opt_out).
 *
 *     struct adapt_opt_out *first = NULL;                      one list for each transaction
 *     adapt_opt_out_note(&first, adapter->module, arena);
 *     if (adapt_opt_out_has(first, adapter->module)) ...       leave the service out
 *
 * A module is known by an address, the same for all services of the configuration that run it. The
 * services of ICAP servers have none: each exchange with one stands alone.
 *
 * Threads: the worker's. Memory: the transaction's arena. There are as many entries as modules at
 * most.
 */
#ifndef RETORT_ADAPT_OPT_OUTS_H
#define RETORT_ADAPT_OPT_OUTS_H

#include "base/arena.h"

struct adapt_opt_out {
    const void *module;
    struct adapt_opt_out *next;
};

/* `module` NULL: false. */
static inline bool adapt_opt_out_has(const struct adapt_opt_out *first, const void *module) {
    while (first != NULL && first->module != module)
        first = first->next;
    return first != NULL && module != NULL;
}

static inline void adapt_opt_out_note(struct adapt_opt_out **firstp, const void *module,
                                      struct arena *arena) {
    if (adapt_opt_out_has(*firstp, module))
        return;
    struct adapt_opt_out *entry = arena_alloc(arena, sizeof *entry);
    *entry = (struct adapt_opt_out){module, *firstp};
    *firstp = entry;
}

#endif
