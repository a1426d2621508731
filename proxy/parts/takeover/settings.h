/* The settings of the part takeover: settings->parts[PART_TAKEOVER]. Threads: read-only. */
#ifndef RETORT_TAKEOVER_SETTINGS_H
#define RETORT_TAKEOVER_SETTINGS_H

struct takeover_settings {
    char *socket; /* path; NULL: beside the admin socket */
};

extern const struct part_settings takeover_part_settings;

#endif
