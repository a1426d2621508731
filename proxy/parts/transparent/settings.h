/* The settings of the part transparent: settings->parts[PART_TRANSPARENT]. Threads: read-only. */
#ifndef RETORT_TRANSPARENT_SETTINGS_H
#define RETORT_TRANSPARENT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

/* silent, other: connections without HTTP or TLS. */
enum transparent_silent { TRANSPARENT_SILENT_CLOSE, TRANSPARENT_SILENT_TUNNEL };
enum transparent_mismatch { TRANSPARENT_MISMATCH_PASS, TRANSPARENT_MISMATCH_REFUSE };
enum transparent_other { TRANSPARENT_OTHER_REFUSE, TRANSPARENT_OTHER_TUNNEL };

struct transparent_settings {
    /* Copied to settings->sockets, too. */
    bool tproxy, spoof_client;
    unsigned mark;
    uint64_t silent_after;          /* milliseconds */
    enum transparent_silent silent; /* after that time without a byte */
    enum transparent_other other;   /* neither HTTP nor TLS */
    enum transparent_mismatch mismatch;
};

extern const struct part_settings transparent_part_settings;

#endif
