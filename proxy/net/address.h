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

enum { ADDRESS_TEXT = 128, ADDRESS_IP_TEXT = 48 };

struct address {
    socklen_t length;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    };
};

/* "127.0.0.1:80", "[::1]:80", ":80" (any address, both families), "*:80" likewise, "/path" (Unix).
 * default_port 0: a port must be given. */
bool address_parse(struct address *address, struct slice text, uint16_t default_port);
bool address_parse_ip(struct address *address, struct slice ip, uint16_t port);
/* The same in every spelling that programs take for an IP: also "127.1", "0x7f.1", "2130706433",
 * and with a dot behind it. */
bool address_parse_spelt_ip(struct address *address, struct slice ip, uint16_t port);
/* With the port; returns the length. */
size_t address_format(const struct address *address, char *out);
/* The IP alone, IPv4-mapped IPv6 shown as IPv4; ADDRESS_IP_TEXT is room enough. */
size_t address_format_ip(const struct address *address, char *out);
bool address_equal(const struct address *a, const struct address *b);
uint16_t address_port(const struct address *address);
void address_set_port(struct address *address, uint16_t port);
/* 127.0.0.0/8 and ::1: only this machine reaches it. */
bool address_is_loopback(const struct address *address);

/* A block of addresses: "10.0.0.0/8", "::1". */
struct network {
    bool v6;
    unsigned bits;
    unsigned char prefix[16];
};

bool network_parse(struct network *network, struct slice text);
bool network_contains(const struct network *network, const struct address *address);
/* Clears what lies behind so many bits of the prefix. */
void network_mask(struct network *network, unsigned bits);
/* The block of that size that the address is in; false: it is an address of the other kind. */
bool network_around(struct network *network, const struct address *address, bool v6, unsigned bits);

#endif
