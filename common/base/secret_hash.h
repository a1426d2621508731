/*
 * A hash for tables in memory whose keys come from outside, such as host names: base/table.h.
 *
 *     place = places[secret_hash(text) % PLACES];
 *
 * The hash depends on a secret of the process. So nobody can choose keys that fall into one chain,
 * which would make look-ups in that chain slow. The secret changes with each start. So data on disk
 * and messages to other programs need another hash.
 *
 * Threads: any.
 */
#ifndef RETORT_BASE_SECRET_HASH_H
#define RETORT_BASE_SECRET_HASH_H

#include "base/slice.h"

#include <stdint.h>

uint64_t secret_hash(struct slice text);

#endif
