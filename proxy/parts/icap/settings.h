/*
 * The settings of the part icap: icap_service sections. What they are loaded into is the core's (struct service_settings), since
 * chains ask services of either kind.
 *
 * Threads: constants.
 */
#ifndef RETORT_ICAP_SETTINGS_H
#define RETORT_ICAP_SETTINGS_H

#include "settings/part_settings.h"

extern const struct part_settings icap_part_settings;

#endif
