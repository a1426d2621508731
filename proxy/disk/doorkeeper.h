/*
 * The doorkeeper: has a key been seen lately? Most objects of the web are asked for once; those
 * need not wear a disk, nor take the place of others in memory.
 *
 *     struct doorkeeper *doorkeeper = doorkeeper_new(838860, 838860);
 *     if (doorkeeper_has_seen(doorkeeper, key, 1)) ...       and remembers it
 *
 *     doorkeeper_new(65536, 32 << 20);                       for so many keys or bytes, say
 *     if (doorkeeper_has_seen(doorkeeper, key, its_bytes)) ...
 *
 * Two Bloom filters take turns: when what one has taken in weighs `fill`, the other is emptied and
 * goes on; so a key is known while keys of that weight come after it, and at most twice as long.
 * One key in a hundred or so is taken for seen when it was not. Threads: any, without a lock: a bit
 * that is lost in a race means that an object waits for its third time.
 */
#ifndef RETORT_DISK_DOORKEEPER_H
#define RETORT_DISK_DOORKEEPER_H

#include "cache/object.h"

struct doorkeeper;

/* keys: how many a filter is made for; as many count as its fill, whatever they weigh. */
struct doorkeeper *doorkeeper_new(unsigned keys, uint64_t fill);
void doorkeeper_free(struct doorkeeper **doorkeeperp);
bool doorkeeper_has_seen(struct doorkeeper *doorkeeper, struct cache_key key, uint64_t weight);

#endif
