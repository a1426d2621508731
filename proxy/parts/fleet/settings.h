/*
 * The settings of the part fleet, settings->parts[PART_FLEET]: of which fleet this node is, and how it reaches the engine.
 *
 *     const struct fleet_settings *fleet = fleet_settings_of(settings);
 *     if (fleet != NULL) ...                       this proxy is a node of a fleet
 *
 * Threads: read-only, as all settings. Units: milliseconds.
 */
#ifndef RETORT_FLEET_SETTINGS_H
#define RETORT_FLEET_SETTINGS_H

#include "fleet/event.h"
#include "settings/settings.h"
#include "tls/trust.h"

/* What becomes of stored responses that the node can't vouch for. */
enum fleet_isolation { FLEET_REVALIDATE, FLEET_SERVE, FLEET_REFUSE };

struct fleet_settings {
    char *name; /* of the fleet */
    char *node, *directory;
    char **servers;
    char *sentinel, *user, *password_file, *sentinel_password_file, *key_file;
    char *password, *sentinel_password; /* the contents of the files */
    struct fleet_key key;
    bool tls;
    struct tls_trust_settings trust;
    uint64_t lease, timeout;
    unsigned copies, keep;
    enum fleet_isolation on_isolation;
};

/* At most one. */
struct fleets_settings {
    struct fleet_settings *list;
    size_t count;
};

extern const struct part_settings fleet_part_settings;

/* NULL: the proxy is a node of no fleet. */
static inline const struct fleet_settings *fleet_settings_of(const struct settings *settings) {
    const struct fleets_settings *fleets = settings->parts[PART_FLEET];
    return fleets->count > 0 ? &fleets->list[0] : NULL;
}

#endif
