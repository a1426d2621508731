/*
 * The header of the PROXY protocol: the first bytes of a connection, by which a load balancer says
 * for whom it connects ("The PROXY protocol, Versions 1 & 2", HAProxy's doc/proxy-protocol.txt).
 *
 *     struct proxy_header header;
 *     ssize_t used = proxy_header_parse(&header, bytes, length);
 *     if (used > 0 && header.has_addresses) ...       header.source, header.destination
 *
 *     char out[PROXY_HEADER_WRITTEN];
 *     size_t length = proxy_header_write(PROXY_HEADER_V2, &client, &destination, out);
 *
 * Version 1 is a line of text. Version 2 is binary, and may carry further facts (TLV), which are
 * checked for their lengths and skipped; of these a checksum (PP2_TYPE_CRC32C) must be right. A
 * header without usable addresses (UNKNOWN, LOCAL, AF_UNSPEC, AF_UNIX) is good: the connection is
 * then taken for the load balancer's own, as with its health checks. Headers of datagrams are bad.
 * IPv4 addresses that IPv6 addresses contain (RFC 4291 §2.5.5.2) are turned into IPv4 addresses.
 *
 * Threads: any.
 */
#ifndef RETORT_PROXY_PROTOCOL_HEADER_H
#define RETORT_PROXY_PROTOCOL_HEADER_H

#include "net/address.h"
#include "settings/origins.h"

#include <sys/types.h>

enum {
    PROXY_HEADER_MAX = 4096,   /* a longer one is bad; HAProxy's are below 600 bytes */
    PROXY_HEADER_V1_MAX = 107, /* with CR LF */
};

struct proxy_header {
    enum proxy_header_version version;
    bool has_addresses; /* else `source` and `destination` are not set */
    struct address source, destination;
};

/* Returns the bytes of the header; 0: more bytes are needed; -1: this is no header. The result is
 * the same however many bytes follow the header. */
ssize_t proxy_header_parse(struct proxy_header *header, const char *bytes, size_t length);

/* Writes a header into `out`, which has room for PROXY_HEADER_WRITTEN bytes, and returns its length. Source NULL, or addresses that are not both
 * IP: the header says that the connection is the proxy's own (LOCAL, UNKNOWN). When one address is
 * IPv4 and the other IPv6, both are written as IPv6. */
size_t proxy_header_write(unsigned version, const struct address *source,
                          const struct address *destination, char *out);

#endif
