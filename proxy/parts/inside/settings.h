/*
 * The settings of the part inside: service sections. What they are loaded into is the core's (struct service_settings), since
 * chains ask services of either kind.
 *
 * Threads: constants.
 */
#ifndef RETORT_INSIDE_SETTINGS_H
#define RETORT_INSIDE_SETTINGS_H

#include "settings/part_settings.h"

extern const struct part_settings inside_part_settings;

#endif
