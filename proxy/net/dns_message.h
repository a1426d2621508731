/*
 * The message of a name server (RFC 1035 §4): its names and its records. What a record says is read
 * by net/dns_answer.h (addresses) and net/dns_targets.h (servers of a service).
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

/* The two bytes at `at`, which are in the message. */
unsigned dns_message_16(const struct dns_message *message, size_t at);
/* Reads a name, which may be compressed (§4.1.4), and moves *at behind it. */
bool dns_message_name(const struct dns_message *message, size_t *at, struct dns_name *name);

#endif
