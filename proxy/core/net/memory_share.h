/*
 * The memory that the connections of all workers hold: read buffers, bodies on their way to slow
 * readers, bytes kept for services, and the structs of connections and requests.
 *
 *     struct memory_shares *shares = memory_shares_new(workers);
 *     context->share = memory_shares_of(shares, index);          of each worker
 *     net_context_tell_memory(net);                              now and then, in its own thread
 *     if (net->pressure == NET_FULL) ...                         begin no new request
 *
 * Each worker counts for itself. At most once in a millisecond it writes the sum into its share and
 * adds up the shares of all workers. So the limit (client.memory) costs almost no time, and can be
 * exceeded only by what workers take within one millisecond. Kernel memory is not counted;
 * TCP_NOTSENT_LOWAT limits it for each connection.
 *
 * malloc keeps what was freed, for its own use. After many connections have gone, one thread gives
 * that back to the system:
 *
 *     memory_shares_give_back(shares);                   every few seconds; it may take milliseconds
 *
 * Threads: a share is written by its worker and read by all.
 */
#ifndef RETORT_NET_MEMORY_SHARE_H
#define RETORT_NET_MEMORY_SHARE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that connections have freed since malloc last gave memory back. */
enum { MEMORY_GIVE_BACK = 16 << 20 };

struct memory_shares;

/* Each share has a cache line of its own. */
struct memory_share {
    alignas(64) _Atomic size_t held; /* bytes */
    struct memory_shares *all;
};

struct memory_shares *memory_shares_new(unsigned workers);
void memory_shares_free(struct memory_shares **sharesp);
struct memory_share *memory_shares_of(struct memory_shares *shares, unsigned worker);
/* Gives back what malloc keeps, if all workers hold MEMORY_GIVE_BACK bytes less than they did at most
 * since the last time. Returns false when it did not. */
bool memory_shares_give_back(struct memory_shares *shares);
/* How often it was given back. */
uint64_t memory_shares_returns(const struct memory_shares *shares);
/* Stores how many bytes the worker holds. Returns how many bytes all workers hold. */
size_t memory_share_tell(struct memory_share *share, size_t held);

#endif
