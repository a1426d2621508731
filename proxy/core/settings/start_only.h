/*
 * Options that only a start of the program applies: a reload leaves them as they were, and says so.
 *
 *     struct findings left = {0};
 *     start_only_compare(first, settings, &left);       one finding for each option that differs
 *
 * Threads: pure.
 */
#ifndef RETORT_SETTINGS_START_ONLY_H
#define RETORT_SETTINGS_START_ONLY_H

#include "base/findings.h"
#include "settings/settings.h"

/* first: the settings of the start. */
void start_only_compare(const struct settings *first, const struct settings *new,
                        struct findings *left);

#endif
