#include "net/address.h"

#include "base/failure.h"

#include <arpa/inet.h>
#include <stdio.h>

/* For functions of C, to which a NUL would be the end. */
static bool copy_text(char *out, size_t capacity, struct slice text) {
    if (text.length == 0 || text.length >= capacity || memchr(text.base, '\0', text.length) != NULL)
        return false;
    memcpy(out, text.base, text.length);
    out[text.length] = '\0';
    return true;
}

bool address_parse_ip(struct address *address, struct slice ip, uint16_t port) {
    char text[INET6_ADDRSTRLEN];
    memset(address, 0, sizeof *address);
    if (!copy_text(text, sizeof text, ip))
        return false;
    if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        address->length = sizeof address->v4;
        return true;
    }
    if (inet_pton(AF_INET6, text, &address->v6.sin6_addr) == 1) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons(port);
        address->length = sizeof address->v6;
        return true;
    }
    return false;
}

bool address_parse_spelt_ip(struct address *address, struct slice ip, uint16_t port) {
    char text[INET6_ADDRSTRLEN];
    if (address_parse_ip(address, ip, port))
        return true;
    if (ip.length > 0 && ip.base[ip.length - 1] == '.')
        ip.length--;
    if (ip.length == 0 || ip.base[0] < '0' || ip.base[0] > '9' ||
        !copy_text(text, sizeof text, ip) || strpbrk(text, " \t\r\n\v\f") != NULL ||
        inet_aton(text, &address->v4.sin_addr) == 0)
        return false;
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons(port);
    address->length = sizeof address->v4;
    return true;
}

static bool parse_local(struct address *address, struct slice path) {
    memset(address, 0, sizeof *address);
    if (!copy_text(address->local.sun_path, sizeof address->local.sun_path, path))
        return false;
    address->local.sun_family = AF_UNIX;
    address->length = sizeof address->local;
    return true;
}

bool address_parse(struct address *address, struct slice text, uint16_t default_port) {
    uint64_t port = default_port;
    if (text.length > 0 && text.base[0] == '/')
        return parse_local(address, text);
    const char *colon = text.length > 0 ? memrchr(text.base, ':', text.length) : NULL;
    const char *bracket = text.length > 0 ? memrchr(text.base, ']', text.length) : NULL;
    struct slice host = text;
    if (colon != NULL && (bracket == NULL || colon > bracket)) {
        size_t before = (size_t)(colon - text.base);
        host.length = before;
        if (!slice_to_uint64(slice_make(colon + 1, text.length - before - 1), &port))
            return false;
    }
    if (port == 0 || port > 65535)
        return false;
    if (host.length == 0 || slice_equal(host, SLICE("*")))
        return address_parse_ip(address, SLICE("::"), (uint16_t)port);
    if (host.base[0] == '[') {
        if (host.length < 2 || host.base[host.length - 1] != ']')
            return false;
        host = slice_make(host.base + 1, host.length - 2);
    }
    return address_parse_ip(address, host, (uint16_t)port);
}

static bool is_mapped(const struct address *address) {
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr);
}

/* Formats by hand because inet_ntop uses printf, and each request to an origin contains an
 * address. */
static size_t format_v4(const uint8_t bytes[4], char *out) {
    char *at = out;
    for (int i = 0; i < 4; i++) {
        if (bytes[i] >= 100)
            *at++ = (char)('0' + bytes[i] / 100);
        if (bytes[i] >= 10)
            *at++ = (char)('0' + bytes[i] / 10 % 10);
        *at++ = (char)('0' + bytes[i] % 10);
        *at++ = i < 3 ? '.' : '\0';
    }
    return (size_t)(at - out) - 1;
}

size_t address_format_ip(const struct address *address, char *out) {
    out[0] = '\0';
    if (address->any.sa_family == AF_INET)
        return format_v4((const uint8_t *)&address->v4.sin_addr, out);
    if (is_mapped(address))
        return format_v4(address->v6.sin6_addr.s6_addr + 12, out);
    if (address->any.sa_family == AF_INET6)
        inet_ntop(AF_INET6, &address->v6.sin6_addr, out, ADDRESS_IP_TEXT);
    else
        strcpy(out, "-");
    return strlen(out);
}

uint16_t address_port(const struct address *address) {
    if (address->any.sa_family == AF_INET)
        return ntohs(address->v4.sin_port);
    if (address->any.sa_family == AF_INET6)
        return ntohs(address->v6.sin6_port);
    return 0;
}

void address_set_port(struct address *address, uint16_t port) {
    if (address->any.sa_family == AF_INET)
        address->v4.sin_port = htons(port);
    else if (address->any.sa_family == AF_INET6)
        address->v6.sin6_port = htons(port);
}

void address_unmap(struct address *address) {
    struct address v4 = {.length = sizeof v4.v4};
    if (!is_mapped(address))
        return;
    v4.v4.sin_family = AF_INET;
    v4.v4.sin_port = address->v6.sin6_port;
    memcpy(&v4.v4.sin_addr, address->v6.sin6_addr.s6_addr + 12, sizeof v4.v4.sin_addr);
    *address = v4;
}

static struct slice network_key(char kind, const void *bytes, unsigned length, unsigned prefix,
                                char *out) {
    enum { HEAD = 2 };
    out[0] = kind;
    out[1] = (char)prefix;
    memcpy(out + HEAD, bytes, length);
    for (unsigned bit = prefix; bit < length * 8; bit++)
        out[HEAD + bit / 8] = (char)((unsigned char)out[HEAD + bit / 8] & ~(0x80u >> bit % 8));
    return slice_make(out, HEAD + length);
}

struct slice address_network_key(const struct address *address, unsigned ipv4_prefix,
                                 unsigned ipv6_prefix, char *out) {
    struct address plain = *address;
    address_unmap(&plain);
    if (plain.any.sa_family == AF_INET)
        return network_key('4', &plain.v4.sin_addr, 4, ipv4_prefix, out);
    if (plain.any.sa_family == AF_INET6)
        return network_key('6', &plain.v6.sin6_addr, 16, ipv6_prefix, out);
    out[0] = 'a';
    return slice_make(out, 1);
}

bool address_is_loopback(const struct address *address) {
    if (address->any.sa_family == AF_INET)
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
    if (is_mapped(address))
        return address->v6.sin6_addr.s6_addr[12] == 127;
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

size_t address_format(const struct address *address, char *out) {
    char ip[ADDRESS_TEXT];
    if (address->any.sa_family == AF_UNIX)
        return (size_t)snprintf(out, ADDRESS_TEXT, "%s", address->local.sun_path);
    address_format_ip(address, ip);
    bool brackets = strchr(ip, ':') != NULL;
    return (size_t)snprintf(out, ADDRESS_TEXT, "%s%.64s%s:%u", brackets ? "[" : "", ip,
                            brackets ? "]" : "", address_port(address));
}

bool address_equal(const struct address *a, const struct address *b) {
    if (a->any.sa_family != b->any.sa_family)
        return false;
    switch (a->any.sa_family) {
    case AF_INET:
        return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    case AF_INET6:
        return a->v6.sin6_port == b->v6.sin6_port &&
               memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) == 0;
    default: return strcmp(a->local.sun_path, b->local.sun_path) == 0;
    }
}

static bool network_take(struct network *network, struct slice text) {
    struct address address;
    uint64_t bits;
    const char *slash = text.length > 0 ? memchr(text.base, '/', text.length) : NULL;
    size_t ip_length = slash != NULL ? (size_t)(slash - text.base) : text.length;
    if (!address_parse_ip(&address, slice_make(text.base, ip_length), 0))
        return false;
    memset(network, 0, sizeof *network);
    network->v6 = address.any.sa_family == AF_INET6;
    unsigned most = network->v6 ? 128 : 32;
    bits = most;
    if (slash != NULL &&
        (!slice_to_uint64(slice_make(slash + 1, text.length - ip_length - 1), &bits) ||
         bits > most))
        return false;
    network->bits = (unsigned)bits;
    if (network->v6)
        memcpy(network->prefix, &address.v6.sin6_addr, 16);
    else
        memcpy(network->prefix, &address.v4.sin_addr, 4);
    return true;
}

static void say_host_bits(const struct network *asked, const struct network *masked,
                          char reason[NETWORK_REASON]) {
    char network[INET6_ADDRSTRLEN] = "", address[INET6_ADDRSTRLEN] = "";
    int family = asked->v6 ? AF_INET6 : AF_INET;
    inet_ntop(family, masked->prefix, network, sizeof network);
    inet_ntop(family, asked->prefix, address, sizeof address);
    snprintf(reason, NETWORK_REASON,
             "has bits behind its prefix: write \"%s/%u\" for the network, or \"%s\" for the one "
             "address",
             network, asked->bits, address);
}

bool network_read(struct network *network, struct slice text, char reason[NETWORK_REASON]) {
    if (!network_take(network, text))
        return failure(reason, NETWORK_REASON,
                       "is not an address or a network: write \"192.0.2.1\" or \"192.0.2.0/24\"");
    struct network masked = *network;
    network_mask(&masked, masked.bits);
    bool good = memcmp(masked.prefix, network->prefix, sizeof masked.prefix) == 0;
    if (!good)
        say_host_bits(network, &masked, reason);
    return good;
}

bool network_parse(struct network *network, struct slice text) {
    char reason[NETWORK_REASON];
    return network_read(network, text, reason);
}

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits) {
    if (memcmp(a, b, bits / 8) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || ((a[bits / 8] ^ b[bits / 8]) >> (8 - rest)) == 0;
}

/* NULL: the address is not an IP address. */
static const unsigned char *ip_bytes(const struct address *address, bool *v6) {
    *v6 = false;
    if (address->any.sa_family == AF_INET)
        return (const unsigned char *)&address->v4.sin_addr;
    if (is_mapped(address))
        return address->v6.sin6_addr.s6_addr + 12;
    *v6 = true;
    return address->any.sa_family == AF_INET6 ? address->v6.sin6_addr.s6_addr : NULL;
}

bool network_contains(const struct network *network, const struct address *address) {
    bool v6;
    const unsigned char *bytes = ip_bytes(address, &v6);
    return bytes != NULL && v6 == network->v6 && same_bits(network->prefix, bytes, network->bits);
}

void network_mask(struct network *network, unsigned bits) {
    network->bits = bits;
    for (unsigned i = 0; i < sizeof network->prefix; i++) {
        unsigned here = bits <= 8 * i ? 0 : bits >= 8 * i + 8 ? 8 : bits - 8 * i;
        network->prefix[i] &= (unsigned char)(0xff00u >> here);
    }
}

bool network_around(struct network *network, const struct address *address, bool v6,
                    unsigned bits) {
    bool is_v6;
    const unsigned char *bytes = ip_bytes(address, &is_v6);
    if (bytes == NULL || is_v6 != v6)
        return false;
    *network = (struct network){.v6 = v6};
    memcpy(network->prefix, bytes, v6 ? 16 : 4);
    network_mask(network, bits);
    return true;
}
