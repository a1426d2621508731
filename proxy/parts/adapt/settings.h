/*
 * The settings of the part adapt. The core has the adapt sections (settings->adapts).
 *
 *     struct shared_services *services = shared_services_of(settings);
 *
 * Threads: as settings/settings.h.
 */
#ifndef RETORT_ADAPT_SETTINGS_H
#define RETORT_ADAPT_SETTINGS_H

#include "settings/part_settings.h"
#include "settings/settings.h"

/* What it keeps for settings. */
struct adapt_own {
    struct settings *of;              /* with the services and the adapt sections */
    struct shared_services *services; /* that run for them; NULL: nobody has started them */
};

static inline struct shared_services *shared_services_of(const struct settings *settings) {
    return ((const struct adapt_own *)settings->parts[PART_ADAPT])->services;
}

extern const struct part_settings adapt_part_settings;

/* The sections of services of each kind: services_settings.c. */
bool services_settings_load(struct load *load);
void services_settings_release(struct settings *settings);

#endif
