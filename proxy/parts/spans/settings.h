/*
 * The settings of the part spans, settings->parts[PART_SPANS]: which requests are traced, and where their spans go. The core
 * knows whether any are: settings->traces.
 *
 *     if (tracing_settings_of(settings)->collector != NULL) ...           requests may be traced
 *
 * Threads: read-only, as all settings.
 */
#ifndef RETORT_SPANS_SETTINGS_H
#define RETORT_SPANS_SETTINGS_H

#include "settings/settings.h"
#include "transaction/spans.h"

enum { TRACING_SERVICE_NAME = 256 /* bytes at most */ };

struct tracing_settings {
    char *collector; /* URL; NULL: nothing is traced */
    char *authorization, *ca_file, *service_name;
    double sample;         /* of requests without a trace of a caller that is trusted */
    struct network *trust; /* callers whose trace is continued */
    size_t trust_count;
    enum tracing_icap icap; /* transaction/spans.h */
    bool queries;
    unsigned queue;   /* transactions that wait for the collector */
    uint64_t timeout; /* milliseconds */
};

extern const struct part_settings spans_part_settings;

static inline const struct tracing_settings *tracing_settings_of(const struct settings *settings) {
    return settings->parts[PART_SPANS];
}

#endif
