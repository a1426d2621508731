/*
 * A join: stored bytes, a body that arrives, and stored bytes again, as one body.
 *
 *     struct source *source = join_new(&arena, loop, stored, before, &live, from, after);
 *
 * The source gives the first `before` bytes of the stored body, then all of `live`, then `after`
 * bytes of the stored body from `from` on. The stored body is complete and in memory. `live` has a
 * known length, and becomes the join's.
 *
 * Threads: the worker's. Memory: the transaction's arena; source_close releases what it holds.
 */
#ifndef RETORT_TRANSACTION_JOIN_H
#define RETORT_TRANSACTION_JOIN_H

#include "base/arena.h"
#include "cache/body.h"
#include "event/source.h"

struct source *join_new(struct arena *arena, struct loop *loop, struct body *stored,
                        uint64_t before, struct source **livep, uint64_t from, uint64_t after);

#endif
