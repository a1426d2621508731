/*
 * The settings of the part adapt. The core has the adapt sections (settings->adapts).
 *
 * Threads: as settings/settings.h.
 */
#ifndef RETORT_ADAPT_SETTINGS_H
#define RETORT_ADAPT_SETTINGS_H

#include "settings/part_settings.h"

extern const struct part_settings adapt_part_settings;

#endif
