/*
 * The names of hosts in the configuration: of origins, groups, parents and ICAP servers. A worker
 * resolves them at its start, and keeps them resolved, so that no request waits for them.
 *
 *     configured_names_keep(net->resolver, settings);        at the start and at each reload
 *
 * Threads: the worker's.
 */
#ifndef RETORT_CONFIGURED_NAMES_H
#define RETORT_CONFIGURED_NAMES_H

#include "net/resolver.h"
#include "settings/settings.h"

void configured_names_keep(struct resolver *resolver, const struct settings *settings);

#endif
