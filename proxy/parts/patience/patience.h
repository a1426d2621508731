/*
 * The settings of the part patience, and what it keeps for a worker.
 *
 *     uint64_t keep = patience_settings_of(settings)->keep;
 *
 * Units: milliseconds, bytes. Threads: the settings as settings/settings.h; else the worker's.
 */
#ifndef RETORT_PATIENCE_PATIENCE_H
#define RETORT_PATIENCE_PATIENCE_H

#include "event/loop.h"
#include "patience/waiting_download.h"
#include "settings/settings.h"

struct patience_settings {
    uint64_t keep; /* how long results behind waiting pages are kept */
    size_t space;  /* bytes of all results behind waiting pages */
};

struct patience_worker {
    struct loop *loop;
    struct waiting_downloads *downloads; /* of the process */
    struct timer expiry;                 /* when the next of them expires */
};

static inline const struct patience_settings *
patience_settings_of(const struct settings *settings) {
    return settings->parts[PART_PATIENCE];
}

#endif
