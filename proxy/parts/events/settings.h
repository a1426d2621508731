/* The settings of the part events: settings->parts[PART_EVENTS]. Threads: read-only. */
#ifndef RETORT_EVENTS_SETTINGS_H
#define RETORT_EVENTS_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

struct event_settings {
    unsigned consumers; /* at a time */
    size_t queue;       /* bytes that wait for each */
    uint64_t heartbeat; /* milliseconds */
};

extern const struct part_settings events_part_settings;

#endif
