#include "net/egress.h"

#include "base/assert.h"
#include "base/log.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>

enum { KNOWN_FOR = 1000 };

/* The addresses of this machine's interfaces. On a loopback interface the whole block of the
 * address belongs to the machine, so the block is in the list. */
struct own_networks {
    unsigned magic;
#define OWN_NETWORKS_MAGIC 0x0e4ead12u
    uint64_t read_at;
    bool complained;
    size_t count;
    struct network list[];
};

static bool to_address(struct address *address, const struct sockaddr *from) {
    memset(address, 0, sizeof *address);
    if (from == NULL || (from->sa_family != AF_INET && from->sa_family != AF_INET6))
        return false;
    address->length = from->sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
    memcpy(&address->any, from, address->length);
    return true;
}

static unsigned mask_bits(const struct address *mask) {
    bool v6 = mask->any.sa_family == AF_INET6;
    const uint8_t *bytes = v6 ? mask->v6.sin6_addr.s6_addr : (const uint8_t *)&mask->v4.sin_addr;
    unsigned bits = 0;
    for (unsigned i = 0; i < (v6 ? 16u : 4u); i++)
        bits += (unsigned)__builtin_popcount(bytes[i]);
    return bits;
}

static void egress_add(struct own_networks *own, const struct sockaddr *from,
                       const struct sockaddr *net) {
    struct address address, mask;
    if (!to_address(&address, from))
        return;
    bool v6 = address.any.sa_family == AF_INET6;
    unsigned bits = to_address(&mask, net) ? mask_bits(&mask) : v6 ? 128 : 32;
    own->count += network_around(&own->list[own->count], &address, v6, bits);
}

static struct own_networks *read_own(void) {
    enum { OF_EACH = 2 }; /* an address, and the broadcast address */
    struct ifaddrs *interfaces;
    size_t count = 0;
    if (getifaddrs(&interfaces) != 0)
        return NULL;
    for (const struct ifaddrs *at = interfaces; at != NULL; at = at->ifa_next)
        count += OF_EACH;
    struct own_networks *own = xcalloc(1, sizeof *own + count * sizeof own->list[0]);
    own->magic = OWN_NETWORKS_MAGIC;
    for (const struct ifaddrs *at = interfaces; at != NULL; at = at->ifa_next) {
        egress_add(own, at->ifa_addr, at->ifa_flags & IFF_LOOPBACK ? at->ifa_netmask : NULL);
        if (at->ifa_flags & IFF_BROADCAST)
            egress_add(own, at->ifa_broadaddr, NULL);
    }
    freeifaddrs(interfaces);
    return own;
}

/* Keeps the former addresses when the system can't report them now. So a client that exhausts the
 * descriptors does not get more rights. */
static void keep_former(struct net_context *net) {
    struct own_networks *own = net->own_networks;
    if (!own->complained)
        log_error("the machine's own addresses can not be read: %s; the addresses read before stay "
                  "in use (listen.local_destinations)",
                  strerror(errno));
    own->complained = true;
    own->read_at = net->loop->now;
}

bool egress_prepare(struct net_context *net) {
    struct own_networks *own = read_own();
    if (own == NULL)
        return false;
    own->read_at = net->loop->now;
    free(net->own_networks);
    net->own_networks = own;
    return true;
}

bool egress_possible(void) {
    struct own_networks *own = read_own();
    free(own);
    return own != NULL;
}

void egress_release(struct net_context *net) {
    free(net->own_networks);
    net->own_networks = NULL;
}

static bool contains_any(const struct network *list, size_t count, const struct address *address) {
    for (size_t i = 0; i < count; i++)
        if (network_contains(&list[i], address))
            return true;
    return false;
}

static bool is_own(struct net_context *net, const struct address *address) {
    if (net->own_networks == NULL && !egress_prepare(net))
        return true; /* the addresses are not known, so none is allowed */
    CHECK_OBJ(net->own_networks, OWN_NETWORKS_MAGIC);
    if (net->loop->now - net->own_networks->read_at >= KNOWN_FOR && !egress_prepare(net))
        keep_former(net);
    return contains_any(net->own_networks->list, net->own_networks->count, address);
}

#define V4(a, b, bits_)                                                                            \
    {                                                                                              \
        .bits = (bits_), .prefix = {(a), (b) }                                                     \
    }
#define V6(a, b, bits_)                                                                            \
    {                                                                                              \
        .v6 = true, .bits = (bits_), .prefix = {(a), (b) }                                         \
    }

/* Loopback; "this network", whose first address 0.0.0.0 means loopback on Linux; link-local;
 * multicast; broadcast (RFC 6890). */
static const struct network local_networks[] = {
    V4(127, 0, 8),
    V4(0, 0, 8),
    V4(169, 254, 16),
    V4(224, 0, 4),
    {.bits = 32, .prefix = {255, 255, 255, 255}},
    {.v6 = true, .bits = 128, .prefix = {[15] = 1}},
    V6(0, 0, 128),
    V6(0xfe, 0x80, 10),
    V6(0xff, 0, 8),
};

/* Private and shared address space (RFC 1918, RFC 6598, RFC 4193), and what IPv6 had for it before
 * (RFC 3879). */
static const struct network private_networks[] = {
    V4(10, 0, 8),    V4(172, 16, 12), V4(192, 168, 16),
    V4(100, 64, 10), V6(0xfc, 0, 7),  V6(0xfe, 0xc0, 10),
};

static bool egress_is_private(const struct address *address) {
    return contains_any(private_networks, sizeof private_networks / sizeof *private_networks,
                        address);
}

/* Addresses at which clouds give each of their machines its secrets, apart from 169.254.0.0/16 and
 * fe80::/10: Amazon's fd00:ec2::254, Google's fd20:ce::254, Azure's 168.63.129.16, Alibaba's
 * 100.100.100.200, Oracle's 192.0.0.192. */
static const struct network metadata_networks[] = {
    {.v6 = true, .bits = 128, .prefix = {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}},
    {.v6 = true, .bits = 128, .prefix = {0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}},
    {.bits = 32, .prefix = {168, 63, 129, 16}},
    {.bits = 32, .prefix = {100, 100, 100, 200}},
    {.bits = 32, .prefix = {192, 0, 0, 192}},
};

static bool is_local(struct net_context *net, const struct address *address) {
    return contains_any(local_networks, sizeof local_networks / sizeof *local_networks, address) ||
           contains_any(metadata_networks, sizeof metadata_networks / sizeof *metadata_networks,
                        address) ||
           is_own(net, address);
}

/* Extracts the IPv4 address that an IPv6 address contains. False: it contains none. */
static bool carried(struct address *v4, const struct address *address) {
    /* The first bytes of each form, and where the IPv4 address is: IPv4-compatible (obsolete),
     * IPv4-mapped, IPv4-translated (RFC 2765), NAT64 (two prefixes), 6to4. */
    static const struct {
        uint8_t begin[12];
        unsigned length, at;
    } forms[] = {
        {{0}, 12, 12},
        {{[10] = 0xff, [11] = 0xff}, 12, 12},
        {{[8] = 0xff, [9] = 0xff}, 12, 12},
        {{0x00, 0x64, 0xff, 0x9b}, 12, 12},
        {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 6, 12},
        {{0x20, 0x02}, 2, 2},
    };
    const uint8_t *bytes = address->v6.sin6_addr.s6_addr;
    if (address->any.sa_family != AF_INET6)
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (memcmp(bytes, forms[i].begin, forms[i].length) != 0)
            continue;
        *v4 = (struct address){.length = sizeof v4->v4};
        v4->v4.sin_family = AF_INET;
        v4->v4.sin_port = address->v6.sin6_port;
        memcpy(&v4->v4.sin_addr, bytes + forms[i].at, sizeof v4->v4.sin_addr);
        return true;
    }
    return false;
}

static bool egress_is_wildcard(const struct address *address) {
    return address->any.sa_family == AF_INET ? address->v4.sin_addr.s_addr == htonl(INADDR_ANY)
                                             : IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

/* Would a connection to `address`, which belongs to this machine, reach the listener at `listen`? A
 * connection to the address 0.0.0.0 or :: goes to loopback. */
static bool leads_to(const struct address *address, const struct address *listen) {
    struct network only;
    if (listen->any.sa_family == AF_UNIX || address_port(listen) == 0 ||
        address_port(listen) != address_port(address))
        return false;
    if (egress_is_wildcard(listen) || egress_is_wildcard(address))
        return true;
    return (network_around(&only, listen, false, 32) || network_around(&only, listen, true, 128)) &&
           network_contains(&only, address);
}

static bool has_listener(const struct net_context *net, const struct address *address) {
    const struct net_configuration *configured = &net->configured;
    for (size_t i = 0; i < configured->listen_count; i++)
        if (leads_to(address, &configured->listens[i]))
            return true;
    return false;
}

static bool is_listened_on(struct net_context *net, const struct address *address) {
    return has_listener(net, address) && is_local(net, address);
}

/* Only the addresses that the proxy itself listens on are out of reach. */
static bool egress_excepts_listeners(enum egress egress) {
    return egress == EGRESS_OTHERS || egress == EGRESS_FOUND_LOCAL;
}

static bool is_within(struct net_context *net, enum egress egress, const struct address *address) {
    if (egress_excepts_listeners(egress))
        return !is_listened_on(net, address);
    return !is_local(net, address) && (egress != EGRESS_PUBLIC || !egress_is_private(address));
}

bool egress_allows(struct net_context *net, enum egress egress, const struct address *address) {
    struct address v4;
    if (egress == EGRESS_ANY)
        return true;
    return is_within(net, egress, address) &&
           (!carried(&v4, address) || is_within(net, egress, &v4));
}

bool egress_allows_from(const struct net_context *net, enum egress egress,
                        const struct address *address, const struct address *from) {
    struct address same = *from;
    address_set_port(&same, address_port(address));
    if (egress == EGRESS_ANY || !address_equal(&same, address))
        return true;
    return egress_excepts_listeners(egress) && !has_listener(net, address);
}

const char *egress_mark(enum egress egress) {
    static const char *const marks[] = {
        [EGRESS_REMOTE] = " remote", [EGRESS_OTHERS] = " others",
        [EGRESS_ANY] = "",           [EGRESS_PUBLIC] = " public",
        [EGRESS_FOUND] = " found",   [EGRESS_FOUND_LOCAL] = " found-local",
    };
    return marks[egress];
}

const char *egress_error(enum egress egress) {
    if (egress == EGRESS_PUBLIC)
        return "it leads to a private network or to the proxy's own machine";
    if (egress == EGRESS_FOUND)
        return "SRV records name it, and it leads to a loopback or link-local address, a service "
               "of clouds for their machines, or the proxy's own machine "
               "(origins.local_destinations)";
    if (egress == EGRESS_FOUND_LOCAL)
        return "SRV records name it, and it leads to an address that the proxy itself listens at";
    return egress == EGRESS_REMOTE
               ? "clients of this listener may not reach loopback and link-local addresses, the "
                 "services of clouds for their machines, and the proxy's own machine "
                 "(listen.local_destinations)"
               : "the proxy itself listens at this address, and clients may not reach it through "
                 "the proxy";
}
