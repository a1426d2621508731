/* What the part fleet keeps for the process, server->parts[PART_FLEET]; NULL: the proxy is a node of no fleet. */
#ifndef RETORT_FLEET_STATE_H
#define RETORT_FLEET_STATE_H

#include "cache/vouching.h"
#include "fleet/node.h"
#include "fleet/settings.h"

struct fleet_state {
    struct settings *of; /* those of the start, referenced */
    const struct fleet_settings *settings;
    struct fleet_node *node;
    struct vouching vouching;
};

#endif
