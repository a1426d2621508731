/*
 * The class of adapters that run services inside the proxy (adapt/adapter.h).
 *
 *     return &inside_adapter_class;                  proxy/adapters.c, for service sections
 *
 * Threads: a constant.
 */
#ifndef RETORT_INSIDE_ADAPTER_H
#define RETORT_INSIDE_ADAPTER_H

#include "adapt/adapter.h"

struct content_room;

extern const struct adapter_class inside_adapter_class;

/* From now on instances that start reach the content of the cache; NULL: they no longer do. */
void inside_adapter_use_content(struct content_room *room);

#endif
