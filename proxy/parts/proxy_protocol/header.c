#include "proxy_protocol/header.h"

#include <arpa/inet.h>
#include <stdio.h>

/* Offsets and values of version 2, §2.2 of the specification. */
enum {
    SIGNATURE_LENGTH = 12,
    V2_HEAD = 16,
    V2_LOCAL = 0x20,
    V2_PROXY = 0x21,
    FAMILY_UNSPEC = 0,
    FAMILY_INET = 1,
    FAMILY_INET6 = 2,
    FAMILY_UNIX = 3,
    TRANSPORT_UNSPEC = 0,
    TRANSPORT_STREAM = 1,
    INET_LENGTH = 12,
    INET6_LENGTH = 36,
    UNIX_LENGTH = 216,
    TLV_HEAD = 3,
    TLV_CRC32C = 3,
    CRC_LENGTH = 4
};

static const char v2_signature[SIGNATURE_LENGTH] = "\r\n\r\n\0\r\nQUIT\n";

/* The number of bytes in which both agree. */
static size_t common_length(const char *bytes, size_t length, const char *with, size_t most) {
    size_t same = 0;
    while (same < length && same < most && bytes[same] == with[same])
        same++;
    return same;
}

/* Version 1. */

/* Takes a word that ends at a blank, or at the end, off the front of *rest. */
static struct slice next_word(struct slice *rest) {
    const char *blank = rest->length > 0 ? memchr(rest->base, ' ', rest->length) : NULL;
    size_t length = blank != NULL ? (size_t)(blank - rest->base) : rest->length;
    struct slice word = slice_make(rest->base, length);
    size_t taken = blank != NULL ? length + 1 : length;
    *rest = slice_make(rest->base + taken, rest->length - taken);
    return word;
}

/* A port has no leading zeros. */
static bool parse_port(struct slice word, uint16_t *port) {
    uint64_t number;
    if (!slice_to_uint64(word, &number) || number > 65535 ||
        (word.length > 1 && word.base[0] == '0'))
        return false;
    *port = (uint16_t)number;
    return true;
}

static bool parse_v1_address(struct address *address, struct slice ip, uint16_t port,
                             sa_family_t family) {
    if (!address_parse_ip(address, ip, port) || address->any.sa_family != family)
        return false;
    address_unmap(address);
    return true;
}

/* `line` is without CR LF, and behind "PROXY ". */
static bool parse_v1(struct proxy_header *header, struct slice line) {
    struct slice protocol = next_word(&line);
    if (slice_equal(protocol, SLICE("UNKNOWN")))
        return true; /* whatever follows */
    bool v4 = slice_equal(protocol, SLICE("TCP4"));
    if (!v4 && !slice_equal(protocol, SLICE("TCP6")))
        return false;
    sa_family_t family = v4 ? AF_INET : AF_INET6;
    struct slice source = next_word(&line), destination = next_word(&line);
    struct slice source_port = next_word(&line);
    uint16_t from, to;
    header->has_addresses = true;
    return parse_port(source_port, &from) && parse_port(line, &to) &&
           parse_v1_address(&header->source, source, from, family) &&
           parse_v1_address(&header->destination, destination, to, family);
}

static ssize_t read_v1(struct proxy_header *header, const char *bytes, size_t length) {
    struct slice prefix = SLICE("PROXY ");
    if (common_length(bytes, length, prefix.base, prefix.length) < prefix.length)
        return 0;
    size_t most = length < PROXY_HEADER_V1_MAX ? length : PROXY_HEADER_V1_MAX;
    const char *end = memchr(bytes, '\n', most);
    if (end == NULL)
        return length < PROXY_HEADER_V1_MAX ? 0 : -1;
    size_t used = (size_t)(end - bytes) + 1;
    header->version = PROXY_HEADER_V1;
    if (used < prefix.length + 2 || end[-1] != '\r')
        return -1;
    struct slice line = slice_make(bytes + prefix.length, used - prefix.length - 2);
    return parse_v1(header, line) ? (ssize_t)used : -1;
}

/* Version 2. */

static uint16_t read_16(const char *at) {
    return (uint16_t)((unsigned char)at[0] << 8 | (unsigned char)at[1]);
}

static uint32_t read_32(const char *at) {
    return (uint32_t)read_16(at) << 16 | read_16(at + 2);
}

/* CRC32C (RFC 9260, appendix A), bit by bit: few headers have it. */
static uint32_t crc32c_add(uint32_t crc, unsigned char byte) {
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++)
        crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    return crc;
}

/* The sum is that of the whole header, whose sum itself counts as zeros. */
static bool checksum_is_right(const char *bytes, size_t length, size_t sum_at) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++)
        crc = crc32c_add(crc, i >= sum_at && i < sum_at + CRC_LENGTH ? 0 : (unsigned char)bytes[i]);
    return ~crc == read_32(bytes + sum_at);
}

static bool facts_are_good(const char *bytes, size_t at, size_t length) {
    while (at < length) {
        if (length - at < TLV_HEAD)
            return false;
        size_t size = read_16(bytes + at + 1), value = at + TLV_HEAD;
        if (length - value < size)
            return false;
        if (bytes[at] == TLV_CRC32C &&
            (size != CRC_LENGTH || !checksum_is_right(bytes, length, value)))
            return false;
        at = value + size;
    }
    return true;
}

static void set_v4(struct address *address, const char *ip, const char *port) {
    *address = (struct address){.length = sizeof address->v4};
    address->v4.sin_family = AF_INET;
    memcpy(&address->v4.sin_addr, ip, 4);
    address_set_port(address, read_16(port));
}

static void set_v6(struct address *address, const char *ip, const char *port) {
    *address = (struct address){.length = sizeof address->v6};
    address->v6.sin6_family = AF_INET6;
    memcpy(&address->v6.sin6_addr, ip, 16);
    address_set_port(address, read_16(port));
    address_unmap(address);
}

static void set_addresses(struct proxy_header *header, const char *at, unsigned family) {
    header->has_addresses = true;
    if (family == FAMILY_INET) {
        set_v4(&header->source, at, at + 8);
        set_v4(&header->destination, at + 4, at + 10);
    } else {
        set_v6(&header->source, at, at + 32);
        set_v6(&header->destination, at + 16, at + 34);
    }
}

/* Returns the bytes of the addresses of that family, or -1 for a family that there is not. */
static ssize_t addresses_length(unsigned family, unsigned transport) {
    if (family == FAMILY_UNSPEC || transport == TRANSPORT_UNSPEC)
        return 0;
    if (transport != TRANSPORT_STREAM)
        return -1;
    switch (family) {
    case FAMILY_INET: return INET_LENGTH;
    case FAMILY_INET6: return INET6_LENGTH;
    case FAMILY_UNIX: return UNIX_LENGTH;
    default: return -1;
    }
}

/* All `length` bytes of the header are there. */
static bool parse_v2(struct proxy_header *header, const char *bytes, size_t length) {
    unsigned command = (unsigned char)bytes[12], protocol = (unsigned char)bytes[13];
    unsigned family = protocol >> 4, transport = protocol & 15;
    ssize_t addresses = addresses_length(family, transport);
    if (command == V2_LOCAL)
        return true; /* whatever follows, by §2.2 */
    if (command != V2_PROXY || addresses < 0 || length - V2_HEAD < (size_t)addresses)
        return false;
    /* What follows AF_UNSPEC has no known form. */
    if (addresses == 0)
        return family <= FAMILY_UNIX && transport <= TRANSPORT_STREAM;
    if (!facts_are_good(bytes, V2_HEAD + (size_t)addresses, length))
        return false;
    if (family != FAMILY_UNIX)
        set_addresses(header, bytes + V2_HEAD, family);
    return true;
}

static ssize_t read_v2(struct proxy_header *header, const char *bytes, size_t length) {
    if (length < V2_HEAD)
        return 0;
    size_t used = V2_HEAD + (size_t)read_16(bytes + 14);
    header->version = PROXY_HEADER_V2;
    if (used > PROXY_HEADER_MAX)
        return -1;
    if (length < used)
        return 0;
    return parse_v2(header, bytes, used) ? (ssize_t)used : -1;
}

ssize_t proxy_header_parse(struct proxy_header *header, const char *bytes, size_t length) {
    struct slice v1 = SLICE("PROXY ");
    header->version = PROXY_HEADER_OFF;
    header->has_addresses = false;
    if (common_length(bytes, length, v2_signature, SIGNATURE_LENGTH) ==
        (length < SIGNATURE_LENGTH ? length : SIGNATURE_LENGTH))
        return read_v2(header, bytes, length);
    if (common_length(bytes, length, v1.base, v1.length) ==
        (length < v1.length ? length : v1.length))
        return read_v1(header, bytes, length);
    return -1;
}

/* Writing. */

static bool is_ip(const struct address *address) {
    return address != NULL &&
           (address->any.sa_family == AF_INET || address->any.sa_family == AF_INET6);
}

static char *put_16(char *at, uint16_t number) {
    *at++ = (char)(number >> 8);
    *at++ = (char)number;
    return at;
}

/* Writes the 16 bytes of the address as IPv6. */
static void write_v6(const struct address *address, char out[16]) {
    static const char mapped[12] = {[10] = (char)0xff, [11] = (char)0xff};
    if (address->any.sa_family == AF_INET6) {
        memcpy(out, &address->v6.sin6_addr, 16);
        return;
    }
    memcpy(out, mapped, sizeof mapped);
    memcpy(out + sizeof mapped, &address->v4.sin_addr, 4);
}

static char *put_v2_addresses(char *at, const struct address *source,
                              const struct address *destination, bool v4) {
    if (v4) {
        memcpy(at, &source->v4.sin_addr, 4);
        memcpy(at + 4, &destination->v4.sin_addr, 4);
        at += 8;
    } else {
        write_v6(source, at);
        write_v6(destination, at + 16);
        at += 32;
    }
    return put_16(put_16(at, address_port(source)), address_port(destination));
}

static size_t write_v2(const struct address *source, const struct address *destination, bool v4,
                       char *out) {
    memcpy(out, v2_signature, SIGNATURE_LENGTH);
    char *at = out + SIGNATURE_LENGTH;
    *at++ = (char)(source != NULL ? V2_PROXY : V2_LOCAL);
    *at++ = (char)(source == NULL ? 0 : (v4 ? FAMILY_INET : FAMILY_INET6) << 4 | TRANSPORT_STREAM);
    at = put_16(at, source == NULL ? 0 : v4 ? INET_LENGTH : INET6_LENGTH);
    if (source != NULL)
        at = put_v2_addresses(at, source, destination, v4);
    return (size_t)(at - out);
}

static void format_v1_ip(const struct address *address, bool v4, char out[INET6_ADDRSTRLEN]) {
    char bytes[16];
    if (v4) {
        inet_ntop(AF_INET, &address->v4.sin_addr, out, INET6_ADDRSTRLEN);
        return;
    }
    write_v6(address, bytes);
    inet_ntop(AF_INET6, bytes, out, INET6_ADDRSTRLEN);
}

static size_t write_v1(const struct address *source, const struct address *destination, bool v4,
                       char *out) {
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    if (source == NULL)
        return (size_t)snprintf(out, PROXY_HEADER_WRITTEN, "PROXY UNKNOWN\r\n");
    format_v1_ip(source, v4, from);
    format_v1_ip(destination, v4, to);
    return (size_t)snprintf(out, PROXY_HEADER_WRITTEN, "PROXY %s %s %s %u %u\r\n",
                            v4 ? "TCP4" : "TCP6", from, to, address_port(source),
                            address_port(destination));
}

size_t proxy_header_write(unsigned version, const struct address *source,
                          const struct address *destination, char *out) {
    struct address from, to;
    if (!is_ip(source) || !is_ip(destination))
        return version == PROXY_HEADER_V2 ? write_v2(NULL, NULL, false, out)
                                          : write_v1(NULL, NULL, false, out);
    from = *source;
    to = *destination;
    address_unmap(&from);
    address_unmap(&to);
    bool v4 = from.any.sa_family == AF_INET && to.any.sa_family == AF_INET;
    return version == PROXY_HEADER_V2 ? write_v2(&from, &to, v4, out)
                                      : write_v1(&from, &to, v4, out);
}
