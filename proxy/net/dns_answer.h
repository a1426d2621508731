/*
 * The answer of a name server to a question for addresses (RFC 1035 §4.1).
 *
 *     struct dns_answer answer;
 *     dns_answer_parse(&answer, bytes, length, DNS_TYPE_AAAA);
 *     switch (answer.kind) ...                       DNS_ANSWER_ADDRESSES: answer.ips, answer.ttl
 *
 * Addresses count only if their name is the one that was asked for, or follows from it by CNAME
 * records. The lifetime is the smallest of all records that were used. For a name without
 * addresses it is that of RFC 2308 §5: of the SOA record, or its MINIMUM where that is smaller.
 *
 * Threads: any. Nothing is allocated, and names are compared, never trusted to be short or free of
 * loops.
 */
#ifndef RETORT_NET_DNS_ANSWER_H
#define RETORT_NET_DNS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNS_TYPE_A = 1, DNS_TYPE_AAAA = 28, DNS_ANSWER_IPS = 8, DNS_IP_SIZE = 16 };

enum dns_answer_kind {
    DNS_ANSWER_ADDRESSES,
    DNS_ANSWER_NO_NAME,    /* NXDOMAIN */
    DNS_ANSWER_NO_ADDRESS, /* the name has none of this type */
    DNS_ANSWER_BAD,        /* the server failed or refused, or sent no valid answer */
};

struct dns_answer {
    enum dns_answer_kind kind;
    unsigned count;
    uint32_t ttl;                                   /* seconds; 0: not to be kept, or not stated */
    unsigned char ips[DNS_ANSWER_IPS][DNS_IP_SIZE]; /* the first four bytes of IPv4 */
};

void dns_answer_parse(struct dns_answer *answer, const unsigned char *bytes, size_t length,
                      unsigned type);

#endif
