/*
 * What the connections of all workers hold: read buffers, bodies on their way to slow readers, what
 * is kept for services, and what each connection and each request takes by itself.
 *
 *     struct memory_shares *shares = memory_shares_new(workers);
 *     context->share = memory_shares_of(shares, index);          of each worker
 *     net_context_tell_memory(net);                              now and then, in its own thread
 *     if (net->pressure == NET_FULL) ...                         begin nothing new
 *
 * Each worker counts for itself, writes the sum into its share and adds up those of all, at most
 * once in a millisecond: so the bound (client.memory) is exact but for what comes within one, and
 * costs a request nothing. Kernel memory is not counted; it is bounded per connection
 * (TCP_NOTSENT_LOWAT).
 *
 * Threads: a share is written by its worker and read by all.
 */
#ifndef RETORT_NET_MEMORY_SHARE_H
#define RETORT_NET_MEMORY_SHARE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>

struct memory_shares;

/* In a line of memory of its own. */
struct memory_share {
    alignas(64) _Atomic size_t held; /* bytes */
    struct memory_shares *all;
};

struct memory_shares *memory_shares_new(unsigned workers);
void memory_shares_free(struct memory_shares **sharesp);
struct memory_share *memory_shares_of(struct memory_shares *shares, unsigned worker);
/* Puts down what the worker holds. What all hold. */
size_t memory_share_tell(struct memory_share *share, size_t held);

#endif
