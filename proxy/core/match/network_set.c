#include "match/network_set.h"

#include "base/assert.h"

#include <arpa/inet.h>
#include <stdlib.h>

/* Addresses of both families are numbers of 128 bits; those of IPv4 are mapped into IPv6. */
__extension__ typedef unsigned __int128 number;

struct range {
    number from, to; /* both belong to it */
};

struct network_set {
    unsigned magic;
#define NETWORK_SET_MAGIC 0x4e455453u
    bool sealed;
    struct range *ranges; /* once sealed: in order, and apart from each other */
    size_t count, capacity;
};

struct network_set *network_set_new(void) {
    struct network_set *set;
    ALLOC_OBJ(set, NETWORK_SET_MAGIC);
    return set;
}

void network_set_free(struct network_set **setp) {
    struct network_set *set = *setp;
    *setp = NULL;
    if (set == NULL)
        return;
    CHECK_OBJ(set, NETWORK_SET_MAGIC);
    free(set->ranges);
    FREE_OBJ(set);
}

static number number_of_bytes(const unsigned char bytes[16]) {
    number value = 0;
    for (int i = 0; i < 16; i++)
        value = value << 8 | bytes[i];
    return value;
}

static number number_of_v4(const unsigned char bytes[4]) {
    number value = 0xffff;
    for (int i = 0; i < 4; i++)
        value = value << 8 | bytes[i];
    return value;
}

static void network_set_add_range(struct network_set *set, number from, number to) {
    if (set->count == set->capacity) {
        set->capacity = set->capacity * 2 + 16;
        set->ranges = xrealloc(set->ranges, set->capacity * sizeof *set->ranges);
    }
    set->ranges[set->count++] = (struct range){.from = from, .to = to};
}

/* A network of IPv6 that contains the mapped addresses does not stand for IPv4 too. */
void network_set_add(struct network_set *set, const struct network *network) {
    CHECK_OBJ(set, NETWORK_SET_MAGIC);
    ASSERT(!set->sealed);
    const number mapped = (number)0xffff << 32, last_mapped = mapped | 0xffffffff;
    unsigned rest = (network->v6 ? 128 : 32) - network->bits;
    number host = rest == 128 ? ~(number)0 : ((number)1 << rest) - 1;
    number value = network->v6 ? number_of_bytes(network->prefix) : number_of_v4(network->prefix);
    number from = value & ~host, to = value | host;
    if (from < mapped && to > last_mapped) {
        network_set_add_range(set, from, mapped - 1);
        from = last_mapped + 1;
    }
    network_set_add_range(set, from, to);
}

static int compare_ranges(const void *a, const void *b) {
    const struct range *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

void network_set_seal(struct network_set *set) {
    CHECK_OBJ(set, NETWORK_SET_MAGIC);
    size_t kept = 0;
    set->sealed = true;
    if (set->count > 0)
        qsort(set->ranges, set->count, sizeof *set->ranges, compare_ranges);
    for (size_t i = 0; i < set->count; i++) {
        struct range *last = kept > 0 ? &set->ranges[kept - 1] : NULL;
        if (last == NULL || set->ranges[i].from > last->to)
            set->ranges[kept++] = set->ranges[i];
        else if (set->ranges[i].to > last->to)
            last->to = set->ranges[i].to;
    }
    set->count = kept;
}

static bool number_of_address(const struct address *address, number *value) {
    if (address->any.sa_family == AF_INET6)
        *value = number_of_bytes(address->v6.sin6_addr.s6_addr);
    else if (address->any.sa_family == AF_INET)
        *value = number_of_v4((const unsigned char *)&address->v4.sin_addr);
    else
        return false;
    return true;
}

bool network_set_has(const struct network_set *set, const struct address *address) {
    CHECK_OBJ(set, NETWORK_SET_MAGIC);
    ASSERT(set->sealed);
    size_t from = 0, to = set->count;
    number value;
    if (!number_of_address(address, &value))
        return false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (value > set->ranges[middle].to)
            from = middle + 1;
        else
            to = middle;
    }
    return from < set->count && value >= set->ranges[from].from;
}
