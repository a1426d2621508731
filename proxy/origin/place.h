/*
 * Places: the origins that are asked by their URL, host and port, while requests are under way at
 * them or wait for them. Each is a group of one server, so that a limit of connections and a queue
 * work as for groups that are configured. Only asked for where origin.max_connections is set.
 *
 *     struct origin_place *place = origin_place_enter(places, &url, settings);
 *     ... a seat of place->group ...
 *     origin_place_leave(&place);
 *
 * Threads: any. Locks: one per bucket of the table, taken before a group's.
 */
#ifndef RETORT_ORIGIN_PLACE_H
#define RETORT_ORIGIN_PLACE_H

#include "origin/group.h"

struct origin_places;

struct origin_place {
    unsigned magic;
#define ORIGIN_PLACE_MAGIC 0x041991acu
    struct list_link link;
    struct origin_bucket *bucket;
    unsigned references; /* under the bucket's lock */
    struct origin_group *group;
};

struct origin_places *origin_places_new(void);
void origin_places_free(struct origin_places **placesp);

/* `host` and `port` of the URL count; the limits are those of the settings' section "origin". */
struct origin_place *origin_place_enter(struct origin_places *places, const struct url *url,
                                        const struct settings *settings);
/* Before it, seats of its group are closed. */
void origin_place_leave(struct origin_place **placep);

#endif
