#include "net/address_order.h"

#include "base/assert.h"
#include "base/secret_hash.h"

#include <stdlib.h>

struct slow_address {
    struct plain_ip {
        unsigned char bytes[16];
        bool v6;
    } ip;
    uint64_t until; /* 0: the place is free */
};

struct slow_addresses {
    unsigned magic;
#define SLOW_ADDRESSES_MAGIC 0x510add00u
    struct slow_address list[SLOW_ADDRESSES];
};

/* The IP alone: another port of the host is as far away. */
static struct plain_ip ip_of(const struct address *address) {
    struct plain_ip ip;
    memset(&ip, 0, sizeof ip);
    ip.v6 = address->any.sa_family == AF_INET6;
    if (ip.v6)
        memcpy(ip.bytes, &address->v6.sin6_addr, 16);
    else
        memcpy(ip.bytes, &address->v4.sin_addr, 4);
    return ip;
}

/* Each address has one place: a new one takes the place of another. */
static size_t slow_place_of(const struct plain_ip *ip) {
    return secret_hash(slice_make((const char *)ip->bytes, sizeof ip->bytes)) % SLOW_ADDRESSES;
}

static bool is_same_ip(const struct plain_ip *a, const struct plain_ip *b) {
    return a->v6 == b->v6 && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void slow_addresses_note(struct slow_addresses **slowp, const struct address *address,
                         uint64_t until) {
    struct plain_ip ip = ip_of(address);
    if (*slowp == NULL)
        ALLOC_OBJ(*slowp, SLOW_ADDRESSES_MAGIC);
    struct slow_address *at = &(*slowp)->list[slow_place_of(&ip)];
    at->ip = ip;
    at->until = until;
}

void slow_addresses_forget(struct slow_addresses *slow, const struct address *address) {
    struct plain_ip ip = ip_of(address);
    if (slow == NULL)
        return;
    struct slow_address *at = &slow->list[slow_place_of(&ip)];
    if (is_same_ip(&at->ip, &ip))
        at->until = 0;
}

bool slow_addresses_have(const struct slow_addresses *slow, const struct address *address,
                         uint64_t now) {
    struct plain_ip ip = ip_of(address);
    if (slow == NULL)
        return false;
    CHECK_OBJ(slow, SLOW_ADDRESSES_MAGIC);
    const struct slow_address *at = &slow->list[slow_place_of(&ip)];
    return at->until > now && is_same_ip(&at->ip, &ip);
}

void slow_addresses_free(struct slow_addresses **slowp) {
    free(*slowp);
    *slowp = NULL;
}

enum address_rank { RANK_GOOD, RANK_DOUBTFUL, RANK_SLOW, RANKS };

static const struct network doubtful_networks[] = {
    {.v6 = true, .bits = 7, .prefix = {0xfc}},               /* unique local, RFC 4193 */
    {.v6 = true, .bits = 10, .prefix = {0xfe, 0xc0}},        /* site-local, RFC 3879 */
    {.v6 = true, .bits = 16, .prefix = {0x20, 0x02}},        /* 6to4, RFC 3056 */
    {.v6 = true, .bits = 32, .prefix = {0x20, 0x01}},        /* Teredo, RFC 4380 */
    {.v6 = true, .bits = 96, .prefix = {[10] = 0xff, 0xff}}, /* IPv4-mapped, RFC 4291 */
};

static bool address_is_doubtful(const struct address *address) {
    for (size_t i = 0; i < sizeof doubtful_networks / sizeof *doubtful_networks; i++)
        if (network_contains(&doubtful_networks[i], address))
            return true;
    return false;
}

static enum address_rank address_rank_of(const struct address *address,
                                         const struct slow_addresses *slow, uint64_t now) {
    if (slow_addresses_have(slow, address, now))
        return RANK_SLOW;
    return address_is_doubtful(address) ? RANK_DOUBTFUL : RANK_GOOD;
}

/* The next address at or behind *at that has this rank and family, or is of the other family; NULL:
 * there is none. */
static const struct address *next_of(const struct address *addresses, const uint8_t *ranks,
                                     unsigned count, unsigned *at, enum address_rank rank,
                                     bool first, sa_family_t family) {
    while (*at < count) {
        unsigned i = (*at)++;
        if (ranks[i] == rank && (addresses[i].any.sa_family == family) == first)
            return &addresses[i];
    }
    return NULL;
}

void address_order(struct address *addresses, unsigned count, sa_family_t first,
                   const struct slow_addresses *slow, uint64_t now) {
    struct address ordered[ADDRESS_ORDER_MAX];
    uint8_t ranks[ADDRESS_ORDER_MAX];
    unsigned done = 0;
    ASSERT(count <= ADDRESS_ORDER_MAX);
    for (unsigned i = 0; i < count; i++)
        ranks[i] = (uint8_t)address_rank_of(&addresses[i], slow, now);
    for (enum address_rank rank = RANK_GOOD; rank < RANKS; rank++) {
        unsigned one = 0, other = 0;
        const struct address *a, *b;
        do {
            a = next_of(addresses, ranks, count, &one, rank, true, first);
            b = next_of(addresses, ranks, count, &other, rank, false, first);
            if (a != NULL)
                ordered[done++] = *a;
            if (b != NULL)
                ordered[done++] = *b;
        } while (a != NULL || b != NULL);
    }
    ASSERT(done == count);
    memcpy(addresses, ordered, count * sizeof *addresses);
}
