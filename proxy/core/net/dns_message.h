/*
 * The message of a name server (RFC 1035 §4): its names and its records. What a record says is read
 * by net/dns_message.h (addresses) and net/dns_message.h (servers of a service).
 *
 *     const struct dns_message message = {bytes, length};
 *     enum dns_answer_kind kind = dns_message_read(&message, DNS_TYPE_A, on_record, arg, &ttl);
 *
 *     static bool on_record(void *arg, const struct dns_message *message,
 *                           const struct dns_record *record)        false: it is of no use
 *
 * Records count only if their name is the one that was asked for, or follows from it by CNAME
 * records. The lifetime is the smallest of all records that were used. For a name without such
 * records it is that of RFC 2308 §5: of the SOA record, or its MINIMUM where that is smaller.
 *
 * Threads: any. Nothing is allocated, and names are compared, never trusted to be short or free of
 * loops.
 */
#ifndef RETORT_NET_DNS_MESSAGE_H
#define RETORT_NET_DNS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNS_TYPE_A = 1, DNS_TYPE_AAAA = 28, DNS_TYPE_SRV = 33 };
enum { DNS_NAME_BYTES = 255 }; /* RFC 1035 §3.1, with the lengths of the labels */

enum dns_answer_kind {
    DNS_ANSWER_FOUND,
    DNS_ANSWER_NO_NAME,   /* NXDOMAIN */
    DNS_ANSWER_NO_RECORD, /* the name has none of this type */
    DNS_ANSWER_BAD,       /* the server failed or refused, or sent no valid answer */
};

struct dns_message {
    const unsigned char *bytes;
    size_t length;
};

/* A name as labels with their lengths, in lower case, and without the last, empty one. */
struct dns_name {
    unsigned length;
    unsigned char labels[DNS_NAME_BYTES];
};

struct dns_record {
    unsigned type, class;
    uint32_t ttl;
    size_t data, data_length; /* where in the message */
};

typedef bool dns_record_fn(void *arg, const struct dns_message *message,
                           const struct dns_record *record);

/* Calls on_record for each record of the type. *ttl is in seconds; 0: not to be kept, or not
 * stated. */
enum dns_answer_kind dns_message_read(const struct dns_message *message, unsigned type,
                                      dns_record_fn *on_record, void *arg, uint32_t *ttl);

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

enum { DNS_ANSWER_IPS = 8, DNS_IP_SIZE = 16 };

struct dns_answer {
    enum dns_answer_kind kind;
    unsigned count;
    uint32_t ttl;                                   /* seconds; 0: not to be kept, or not stated */
    unsigned char ips[DNS_ANSWER_IPS][DNS_IP_SIZE]; /* the first four bytes of IPv4 */
};

void dns_answer_parse(struct dns_answer *answer, const unsigned char *bytes, size_t length,
                      unsigned type);

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
