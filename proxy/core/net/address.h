/*
 * Socket addresses as values: parsing, printing, comparing.
 *
 *     struct address address;
 *     if (!address_parse(&address, SLICE("[::1]:3128"), 0)) ...   IP literals only, no names
 *     char text[ADDRESS_TEXT];
 *     address_format(&address, text);                              "[::1]:3128"
 *
 * Threads: values.
 */
#ifndef RETORT_NET_ADDRESS_H
#define RETORT_NET_ADDRESS_H

#include "base/slice.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { ADDRESS_TEXT = 128, ADDRESS_IP_TEXT = 48, ADDRESS_NETWORK_KEY = 18 };

struct address {
    socklen_t length;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    };
};

/* "127.0.0.1:80", "[::1]:80", ":80" (any address, both families), "*:80" (the same as ":80"),
 * "/path" (Unix). default_port 0: the text must contain a port. */
bool address_parse(struct address *address, struct slice text, uint16_t default_port);
bool address_parse_ip(struct address *address, struct slice ip, uint16_t port);
/* Parses as address_parse_ip does, and accepts the other spellings that programs take for an IP
 * address too: "127.1", "0x7f.1", "2130706433". One dot may stand at the end. */
bool address_parse_spelt_ip(struct address *address, struct slice ip, uint16_t port);
/* Writes IP and port into `out`, which has ADDRESS_TEXT bytes. Returns the length. */
size_t address_format(const struct address *address, char *out);
/* Writes the IP alone into `out`, which has at least ADDRESS_IP_TEXT bytes. An IPv4-mapped IPv6
 * address is written as IPv4. Returns the length. */
size_t address_format_ip(const struct address *address, char *out);
/* Turns an IPv4-mapped IPv6 address, as sockets for both families have it, into the IPv4 address. */
void address_unmap(struct address *address);
bool address_equal(const struct address *a, const struct address *b);
uint16_t address_port(const struct address *address);
void address_set_port(struct address *address, uint16_t port);
/* The network that stands for a client: the first bits of its address. As bytes, which differ where the networks do: '4' or
 * '6', the number of bits, and the address without the rest; 'a' alone for an address that is none of IP. They lie in
 * `out`, which has ADDRESS_NETWORK_KEY bytes. */
struct slice address_network_key(const struct address *address, unsigned ipv4_prefix,
                                 unsigned ipv6_prefix, char *out);
/* Is the address in 127.0.0.0/8, or ::1? Only this machine can reach such an address. */
bool address_is_loopback(const struct address *address);

/* A block of addresses: "10.0.0.0/8", "::1". */
struct network {
    bool v6;
    unsigned bits;
    unsigned char prefix[16];
};

enum { NETWORK_REASON = 200 };

/* False: with a reason, which goes on after the text ("is not an address ..."). A network whose address has bits behind
 * the prefix is refused: 10.1.2.3/8 is meant to be one address, or the whole of 10.0.0.0/8. */
bool network_read(struct network *network, struct slice text, char reason[NETWORK_REASON]);
bool network_parse(struct network *network, struct slice text);
bool network_contains(const struct network *network, const struct address *address);
/* Makes the network `bits` bits long and clears the rest of its prefix. */
void network_mask(struct network *network, unsigned bits);
/* Sets *network to the block of `bits` bits that contains the address. False: the address is of
 * the other family than `v6` says. */
bool network_around(struct network *network, const struct address *address, bool v6, unsigned bits);

#endif
