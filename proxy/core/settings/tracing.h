/*
 * The section tracing: which requests are traced, and where their spans go.
 *
 *     if (settings->tracing.collector != NULL) ...           requests may be traced
 *
 * Threads: read-only, as all settings.
 */
#ifndef RETORT_SETTINGS_TRACING_H
#define RETORT_SETTINGS_TRACING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct network;

enum { TRACING_SERVICE_NAME = 256 /* bytes at most */ };

/* How ICAP services learn the trace: in the head of the ICAP request, in the HTTP request that it
 * encapsulates, in both, or not at all. */
enum tracing_icap { TRACING_ICAP_HEAD, TRACING_ICAP_MESSAGE, TRACING_ICAP_BOTH, TRACING_ICAP_OFF };

struct tracing_settings {
    char *collector; /* URL; NULL: nothing is traced */
    char *authorization, *ca_file, *service_name;
    double sample;         /* of requests without a trace of a caller that is trusted */
    struct network *trust; /* callers whose trace is continued */
    size_t trust_count;
    enum tracing_icap icap;
    bool queries;
    unsigned queue;   /* transactions that wait for the collector */
    uint64_t timeout; /* milliseconds */
};

#endif
