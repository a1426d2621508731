/*
 * The steps of the part: where a transaction asks services, and COLLECT.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_STEPS_H
#define RETORT_ADAPT_STEPS_H

#include "transaction/step.h"

extern const struct step_row collect_step, reqmod_step, reqmod_postcache_step, respmod_step,
    variant_step, respmod_postcache_step;

/* VARIANT is for the same responses as RESPMOD_POSTCACHE. */
bool respmod_postcache_is_needed(const struct settings *settings);
bool respmod_postcache_is_wanted(struct transaction *transaction);

#endif
