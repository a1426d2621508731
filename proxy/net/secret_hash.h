/*
 * A hash for tables in memory whose keys come from outside: names of hosts, bytes of requests.
 *
 *     entry = table[secret_hash(text) % TABLE_SIZE];
 *
 * It is made with a secret of the process, so nobody can choose keys that fall into one chain,
 * which would make each look-up there slow and lock others out of a table that is full. It is
 * another one after each start: what is kept on disk or told to others needs another hash.
 *
 * Threads: any.
 */
#ifndef RETORT_NET_SECRET_HASH_H
#define RETORT_NET_SECRET_HASH_H

#include "base/slice.h"

#include <stdint.h>

uint64_t secret_hash(struct slice text);

#endif
