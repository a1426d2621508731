/*
 * The answer of a name server to a question for addresses (RFC 1035 §4.1).
 *
 *     struct dns_answer answer;
 *     dns_answer_parse(&answer, bytes, length, DNS_TYPE_AAAA);
 *     switch (answer.kind) ...                       DNS_ANSWER_FOUND: answer.ips, answer.ttl
 *
 * Which records count, and what their lifetime is: net/dns_message.h.
 *
 * Threads: any. Nothing is allocated.
 */
#ifndef RETORT_NET_DNS_ANSWER_H
#define RETORT_NET_DNS_ANSWER_H

#include "net/dns_message.h"

enum { DNS_ANSWER_IPS = 8, DNS_IP_SIZE = 16 };

struct dns_answer {
    enum dns_answer_kind kind;
    unsigned count;
    uint32_t ttl;                                   /* seconds; 0: not to be kept, or not stated */
    unsigned char ips[DNS_ANSWER_IPS][DNS_IP_SIZE]; /* the first four bytes of IPv4 */
};

void dns_answer_parse(struct dns_answer *answer, const unsigned char *bytes, size_t length,
                      unsigned type);

#endif
