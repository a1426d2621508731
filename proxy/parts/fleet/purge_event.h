/*
 * A removal as the body of an event (cache/removal.h): {"tag":"shoes","soft":true}
 *
 *     char *body = purge_event_write(&order);                       NULL: it is not UTF-8, or has an expression that is too long
 *     if (!purge_event_apply(body, cache, second_level)) ...         a restart would undo it
 *
 * Threads: those that may wait for the disk.
 */
#ifndef RETORT_FLEET_PURGE_EVENT_H
#define RETORT_FLEET_PURGE_EVENT_H

#include "cache/removal.h"

char *purge_event_write(const struct removal_order *order);
/* A body that is none is left, and said in the log. */
bool purge_event_apply(struct slice body, struct cache *cache, struct second_level *second_level);

#endif
