/*
 * The admission filter: it tells whether a key has been seen lately. Most objects of the web are
 * asked for once. Such an object need not wear a disk, nor take the place of others in memory.
 *
 *     struct admission_filter *filter = admission_filter_new(838860, 838860);
 *     if (admission_filter_has_seen(filter, key, 1)) ...       and remembers it
 *
 *     admission_filter_new(65536, 32 << 20);                   for so many keys or bytes, say
 *     if (admission_filter_has_seen(filter, key, its_bytes)) ...
 *
 * It consists of two Bloom filters that take turns. When the keys in one of them weigh `fill`, the
 * other one is emptied and takes the keys that follow. So a key is known while keys of that weight
 * come after it, and at most twice as long. About one key in a hundred counts as seen although it
 * was not.
 *
 * Threads: any, without a lock. A bit that is lost in a race means that an object is admitted the
 * third time it is asked for.
 */
#ifndef RETORT_DISK_ADMISSION_FILTER_H
#define RETORT_DISK_ADMISSION_FILTER_H

#include "cache/object.h"

struct admission_filter;

/* keys: how many a filter is made for; as many count as its fill, whatever they weigh. */
struct admission_filter *admission_filter_new(unsigned keys, uint64_t fill);
void admission_filter_free(struct admission_filter **filterp);
bool admission_filter_has_seen(struct admission_filter *filter, struct cache_key key,
                               uint64_t weight);

#endif
