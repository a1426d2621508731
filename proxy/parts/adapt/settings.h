/*
 * The settings of the part adapt. The core has the adapt sections (settings->adapts).
 *
 *     uint64_t keep = patience_settings_of(settings)->keep;
 *
 * Units: milliseconds, bytes. Threads: as settings/settings.h.
 */
#ifndef RETORT_ADAPT_SETTINGS_H
#define RETORT_ADAPT_SETTINGS_H

#include "settings/part_settings.h"
#include "settings/settings.h"

struct patience_settings {
    uint64_t keep; /* how long results behind waiting pages are kept */
    size_t space;  /* bytes of all results behind waiting pages */
};

static inline const struct patience_settings *
patience_settings_of(const struct settings *settings) {
    return settings->parts[PART_ADAPT];
}

extern const struct part_settings adapt_part_settings;

#endif
