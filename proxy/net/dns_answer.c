#include "net/dns_answer.h"

#include <string.h>

enum {
    HEADER = 12,
    NAME_MAX_BYTES = 255, /* RFC 1035 §3.1, with the lengths of the labels */
    JUMPS_MAX = 64,
    TYPE_CNAME = 5,
    TYPE_SOA = 6,
    CLASS_IN = 1,
    CODE_NO_NAME = 3,
    RECORD_HEAD = 10,
    SOA_NUMBERS = 20
};

struct dns_message {
    const unsigned char *bytes;
    size_t length;
};

/* A name as labels with their lengths, in lower case, and without the last, empty one. */
struct dns_name {
    unsigned length;
    unsigned char labels[NAME_MAX_BYTES];
};

struct dns_record {
    unsigned type, class;
    uint32_t ttl;
    size_t data, data_length; /* where in the message */
};

static unsigned dns_read_16(const struct dns_message *message, size_t at) {
    return (unsigned)message->bytes[at] << 8 | message->bytes[at + 1];
}

static uint32_t dns_read_32(const struct dns_message *message, size_t at) {
    return (uint32_t)dns_read_16(message, at) << 16 | dns_read_16(message, at + 2);
}

static unsigned char label_byte(unsigned char byte) {
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte | 0x20) : byte;
}

/* Appends the label at `at`, with its length. */
static bool append_label(struct dns_name *name, const struct dns_message *message, size_t at) {
    unsigned size = message->bytes[at] + 1u;
    if (size > message->length - at || size > NAME_MAX_BYTES - name->length)
        return false;
    for (unsigned i = 0; i < size; i++)
        name->labels[name->length++] =
            i == 0 ? (unsigned char)(size - 1) : label_byte(message->bytes[at + i]);
    return true;
}

/* Reads a name, which may be compressed (§4.1.4), and moves *at behind it. */
static bool dns_read_name(const struct dns_message *message, size_t *at, struct dns_name *name) {
    size_t from = *at;
    unsigned jumps = 0;
    name->length = 0;
    while (from < message->length) {
        unsigned size = message->bytes[from];
        if (size == 0) {
            if (jumps == 0)
                *at = from + 1;
            return true;
        }
        if (size >= 0xc0) {
            if (message->length - from < 2 || jumps++ == JUMPS_MAX)
                return false;
            if (jumps == 1)
                *at = from + 2;
            from = dns_read_16(message, from) & 0x3fff;
            continue;
        }
        if (size > 63 || !append_label(name, message, from))
            return false;
        from += size + 1;
    }
    return false;
}

static bool is_same_name(const struct dns_name *a, const struct dns_name *b) {
    return a->length == b->length && memcmp(a->labels, b->labels, a->length) == 0;
}

/* Reads a record, and moves *at behind it. */
static bool dns_read_record(const struct dns_message *message, size_t *at, struct dns_name *name,
                            struct dns_record *record) {
    if (!dns_read_name(message, at, name) || message->length - *at < RECORD_HEAD)
        return false;
    record->type = dns_read_16(message, *at);
    record->class = dns_read_16(message, *at + 2);
    record->ttl = dns_read_32(message, *at + 4);
    if (record->ttl > INT32_MAX)
        record->ttl = 0; /* RFC 2181 §8 */
    record->data_length = dns_read_16(message, *at + 8);
    record->data = *at + RECORD_HEAD;
    if (message->length - record->data < record->data_length)
        return false;
    *at = record->data + record->data_length;
    return true;
}

static void keep_ttl(struct dns_answer *answer, uint32_t ttl) {
    if (ttl < answer->ttl)
        answer->ttl = ttl;
}

static void keep_ip(struct dns_answer *answer, const struct dns_message *message,
                    const struct dns_record *record, size_t size) {
    if (record->data_length != size)
        return;
    keep_ttl(answer, record->ttl);
    if (answer->count < DNS_ANSWER_IPS)
        memcpy(answer->ips[answer->count++], message->bytes + record->data, size);
}

/* Reads the answer section. `wanted` becomes the name that the CNAME records lead to. */
static bool dns_read_answers(struct dns_answer *answer, const struct dns_message *message,
                             size_t *at, struct dns_name *wanted, unsigned type) {
    struct dns_name name;
    struct dns_record record;
    for (unsigned left = dns_read_16(message, 6); left > 0; left--) {
        if (!dns_read_record(message, at, &name, &record))
            return false;
        if (record.class != CLASS_IN || !is_same_name(&name, wanted))
            continue;
        size_t data = record.data;
        if (record.type == type)
            keep_ip(answer, message, &record, type == DNS_TYPE_A ? 4 : 16);
        else if (record.type == TYPE_CNAME && answer->count == 0) {
            keep_ttl(answer, record.ttl);
            if (!dns_read_name(message, &data, wanted))
                return false;
        }
    }
    return true;
}

/* The lifetime that a SOA record in the authority section states. */
static void read_negative_ttl(struct dns_answer *answer, const struct dns_message *message,
                              size_t at) {
    struct dns_name name;
    struct dns_record record;
    uint32_t ttl = 0;
    for (unsigned left = dns_read_16(message, 8); left > 0; left--) {
        if (!dns_read_record(message, &at, &name, &record))
            break;
        if (record.type != TYPE_SOA || record.data_length < SOA_NUMBERS)
            continue;
        uint32_t minimum = dns_read_32(message, record.data + record.data_length - 4);
        ttl = minimum < record.ttl ? minimum : record.ttl;
        break;
    }
    answer->ttl = ttl;
}

/* The question must be the only one. */
static bool dns_read_question(const struct dns_message *message, size_t *at,
                              struct dns_name *name) {
    *at = HEADER;
    if (message->length < HEADER || (message->bytes[2] & 0x80) == 0 || dns_read_16(message, 4) != 1)
        return false;
    if (!dns_read_name(message, at, name) || message->length - *at < 4)
        return false;
    *at += 4;
    return true;
}

void dns_answer_parse(struct dns_answer *answer, const unsigned char *bytes, size_t length,
                      unsigned type) {
    const struct dns_message message = {bytes, length};
    struct dns_name wanted;
    size_t at;
    answer->kind = DNS_ANSWER_BAD;
    answer->count = 0;
    answer->ttl = UINT32_MAX;
    if (!dns_read_question(&message, &at, &wanted))
        return;
    unsigned code = bytes[3] & 15;
    if ((code != 0 && code != CODE_NO_NAME) ||
        !dns_read_answers(answer, &message, &at, &wanted, type))
        return;
    if (answer->count > 0) {
        answer->kind = DNS_ANSWER_ADDRESSES;
        return;
    }
    answer->kind = code == CODE_NO_NAME ? DNS_ANSWER_NO_NAME : DNS_ANSWER_NO_ADDRESS;
    read_negative_ttl(answer, &message, at);
}
