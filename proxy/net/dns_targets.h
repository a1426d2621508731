/*
 * The answer of a name server to a question for the servers of a service (SRV records, RFC 2782).
 *
 *     struct dns_target list[DNS_TARGETS_MAX];
 *     struct dns_targets targets = {.list = list, .room = DNS_TARGETS_MAX};
 *     dns_targets_parse(&targets, bytes, length);
 *     switch (targets.kind) ...      DNS_ANSWER_FOUND: targets.list, targets.count, targets.ttl
 *
 * A found answer without targets says that the service is not there at all: its target is ".". A
 * target whose name is not one of a host (other bytes than letters, digits, '-' and '_' in a
 * label), or whose port is 0, is not in the list. An answer with no others is a bad one.
 *
 * Threads: any. Nothing is allocated. Which records count, and their lifetime: net/dns_message.h.
 */
#ifndef RETORT_NET_DNS_TARGETS_H
#define RETORT_NET_DNS_TARGETS_H

#include "net/dns_message.h"

enum { DNS_TARGETS_MAX = 1024, DNS_HOST_SIZE = DNS_NAME_BYTES + 1 };

struct dns_target {
    uint16_t priority, weight, port;
    char host[DNS_HOST_SIZE]; /* in lower case, without a dot at the end */
};

struct dns_targets {
    struct dns_target *list; /* the caller's */
    unsigned room;
    enum dns_answer_kind kind;
    unsigned count;
    unsigned unusable; /* targets that are not in the list, for what they say or for lack of room */
    uint32_t ttl;      /* seconds; 0: not to be kept, or not stated */
};

void dns_targets_parse(struct dns_targets *targets, const unsigned char *bytes, size_t length);

#endif
