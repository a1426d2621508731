/*
 * A name that the resolver remembers or looks up (net/resolver.h). Inside net/.
 *
 * Threads: the resolver's.
 */
#ifndef RETORT_NET_REMEMBERED_NAME_H
#define RETORT_NET_REMEMBERED_NAME_H

#include "base/list.h"
#include "base/table.h"
#include "net/dns_message.h"
#include "net/resolver.h"

struct name_lookup;

/* Addresses of a name, in a compact form. */
struct name_ips {
    unsigned count[2]; /* of IPv4, of IPv6 */
    unsigned char ips[2][DNS_ANSWER_IPS][DNS_IP_SIZE];
    bool ordered;                      /* somebody has said the order (net/name_review.h) */
    bool families[2 * DNS_ANSWER_IPS]; /* then: of each address in turn, is it the next of IPv6? */
};

/* A name that is being looked up or remembered. */
struct name_entry {
    struct table_entry entry; /* of resolver->names[completed] */
    unsigned magic;
#define NAME_ENTRY_MAGIC 0x4a3e0001u
    struct list_link used; /* of resolver->used; the least recently used first */
    struct list_link kept; /* of resolver->kept; empty: the name may be forgotten */
    struct list_link queries;
    struct name_lookup *lookup;   /* NULL: none is under way */
    bool completed;               /* search domains are for it */
    bool failing;                 /* the last look-up failed, and old addresses serve */
    bool calling;                 /* its queries are being called */
    uint64_t ttl, expires, again; /* milliseconds; `again`: when a refresh may begin */
    uint64_t stale_until;
    const char *error; /* there are no addresses; NULL: nothing is known */
    struct name_ips known;
    char name[];
};

/* The names, the one that was used longest ago first. */
const struct list_link *resolver_remembered(const struct resolver *resolver);
uint64_t resolver_now(const struct resolver *resolver);

#endif
