/*
 * The doorkeeper: has a key been seen lately? Most objects of the web are asked for once; those
 * need not wear a disk.
 *
 *     if (doorkeeper_has_seen(doorkeeper, key)) ...      and remembers it
 *
 * Two Bloom filters take turns: when one has taken its fill, the other is emptied and goes on. One
 * key in a hundred or so is taken for seen when it was not. Threads: any, without a lock: a bit
 * that is lost in a race means that an object waits for its third time.
 */
#ifndef RETORT_DISK_DOORKEEPER_H
#define RETORT_DISK_DOORKEEPER_H

#include "cache/object.h"

struct doorkeeper;

struct doorkeeper *doorkeeper_new(void);
void doorkeeper_free(struct doorkeeper **doorkeeperp);
bool doorkeeper_has_seen(struct doorkeeper *doorkeeper, struct cache_key key);

#endif
