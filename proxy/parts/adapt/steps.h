/*
 * The steps of the part: where a transaction asks services.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_STEPS_H
#define RETORT_ADAPT_STEPS_H

#include "transaction/step.h"

extern const struct step_row reqmod_step, reqmod_postcache_step, respmod_step,
    respmod_postcache_step;

/* VARIANT is for the same responses as RESPMOD_POSTCACHE. */
bool respmod_postcache_is_needed(const struct settings *settings);
bool respmod_postcache_is_wanted(struct transaction *transaction);

#endif
