#include "net/dns_message.h"

#include <string.h>

enum {
    HEADER = 12,
    JUMPS_MAX = 64,
    TYPE_CNAME = 5,
    TYPE_SOA = 6,
    CLASS_IN = 1,
    CODE_NO_NAME = 3,
    RECORD_HEAD = 10,
    SOA_NUMBERS = 20
};

/* The two bytes at `at`, which are in the message. */
static unsigned dns_message_16(const struct dns_message *message, size_t at) {
    return (unsigned)message->bytes[at] << 8 | message->bytes[at + 1];
}

static uint32_t dns_read_32(const struct dns_message *message, size_t at) {
    return (uint32_t)dns_message_16(message, at) << 16 | dns_message_16(message, at + 2);
}

static unsigned char label_byte(unsigned char byte) {
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte | 0x20) : byte;
}

/* Appends the label at `at`, with its length. */
static bool append_label(struct dns_name *name, const struct dns_message *message, size_t at) {
    unsigned size = message->bytes[at] + 1u;
    if (size > message->length - at || size > DNS_NAME_BYTES - name->length)
        return false;
    for (unsigned i = 0; i < size; i++)
        name->labels[name->length++] =
            i == 0 ? (unsigned char)(size - 1) : label_byte(message->bytes[at + i]);
    return true;
}

/* Reads a name, which may be compressed (§4.1.4), and moves *at behind it. */
static bool dns_message_name(const struct dns_message *message, size_t *at, struct dns_name *name) {
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
            from = dns_message_16(message, from) & 0x3fff;
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
    if (!dns_message_name(message, at, name) || message->length - *at < RECORD_HEAD)
        return false;
    record->type = dns_message_16(message, *at);
    record->class = dns_message_16(message, *at + 2);
    record->ttl = dns_read_32(message, *at + 4);
    if (record->ttl > INT32_MAX)
        record->ttl = 0; /* RFC 2181 §8 */
    record->data_length = dns_message_16(message, *at + 8);
    record->data = *at + RECORD_HEAD;
    if (message->length - record->data < record->data_length)
        return false;
    *at = record->data + record->data_length;
    return true;
}

/* What is read of a message. */
struct dns_reading {
    const struct dns_message *message;
    unsigned type;
    dns_record_fn *on_record;
    void *arg;
    unsigned used; /* records */
    uint32_t ttl;
};

static void keep_ttl(struct dns_reading *reading, uint32_t ttl) {
    if (ttl < reading->ttl)
        reading->ttl = ttl;
}

/* Reads the answer section. `wanted` becomes the name that the CNAME records lead to. */
static bool dns_read_answers(struct dns_reading *reading, size_t *at, struct dns_name *wanted) {
    const struct dns_message *message = reading->message;
    struct dns_name name;
    struct dns_record record;
    for (unsigned left = dns_message_16(message, 6); left > 0; left--) {
        if (!dns_read_record(message, at, &name, &record))
            return false;
        if (record.class != CLASS_IN || !is_same_name(&name, wanted))
            continue;
        size_t data = record.data;
        if (record.type == reading->type) {
            if (!reading->on_record(reading->arg, message, &record))
                continue;
            keep_ttl(reading, record.ttl);
            reading->used++;
        } else if (record.type == TYPE_CNAME && reading->used == 0) {
            keep_ttl(reading, record.ttl);
            if (!dns_message_name(message, &data, wanted))
                return false;
        }
    }
    return true;
}

/* The lifetime that a SOA record in the authority section states. */
static uint32_t negative_ttl(const struct dns_message *message, size_t at) {
    struct dns_name name;
    struct dns_record record;
    for (unsigned left = dns_message_16(message, 8); left > 0; left--) {
        if (!dns_read_record(message, &at, &name, &record))
            break;
        if (record.type != TYPE_SOA || record.data_length < SOA_NUMBERS)
            continue;
        uint32_t minimum = dns_read_32(message, record.data + record.data_length - 4);
        return minimum < record.ttl ? minimum : record.ttl;
    }
    return 0;
}

/* The question must be the only one. */
static bool dns_read_question(const struct dns_message *message, size_t *at,
                              struct dns_name *name) {
    *at = HEADER;
    if (message->length < HEADER || (message->bytes[2] & 0x80) == 0 ||
        dns_message_16(message, 4) != 1)
        return false;
    if (!dns_message_name(message, at, name) || message->length - *at < 4)
        return false;
    *at += 4;
    return true;
}

enum dns_answer_kind dns_message_read(const struct dns_message *message, unsigned type,
                                      dns_record_fn *on_record, void *arg, uint32_t *ttl) {
    struct dns_reading reading = {message, type, on_record, arg, 0, UINT32_MAX};
    struct dns_name wanted;
    size_t at;
    *ttl = 0;
    if (!dns_read_question(message, &at, &wanted))
        return DNS_ANSWER_BAD;
    unsigned code = message->bytes[3] & 15;
    if ((code != 0 && code != CODE_NO_NAME) || !dns_read_answers(&reading, &at, &wanted))
        return DNS_ANSWER_BAD;
    *ttl = reading.used > 0 ? reading.ttl : negative_ttl(message, at);
    if (reading.used > 0)
        return DNS_ANSWER_FOUND;
    return code == CODE_NO_NAME ? DNS_ANSWER_NO_NAME : DNS_ANSWER_NO_RECORD;
}

static bool keep_ip(void *arg, const struct dns_message *message, const struct dns_record *record) {
    struct dns_answer *answer = arg;
    if (record->data_length != (record->type == DNS_TYPE_A ? 4 : 16))
        return false;
    if (answer->count < DNS_ANSWER_IPS)
        memcpy(answer->ips[answer->count++], message->bytes + record->data, record->data_length);
    return true;
}

void dns_answer_parse(struct dns_answer *answer, const unsigned char *bytes, size_t length,
                      unsigned type) {
    const struct dns_message message = {bytes, length};
    answer->count = 0;
    answer->kind = dns_message_read(&message, type, keep_ip, answer, &answer->ttl);
}

enum { NUMBERS = 6 }; /* bytes: priority, weight and port */

static bool dns_is_host_byte(unsigned char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
           byte == '_';
}

/* Writes the labels with dots between them. False: this is not the name of a host. */
static bool write_host(const struct dns_name *name, char host[DNS_HOST_SIZE]) {
    unsigned at = 0, to = 0;
    while (at < name->length) {
        unsigned size = name->labels[at++];
        if (to > 0)
            host[to++] = '.';
        for (unsigned end = at + size; at < end; at++) {
            if (!dns_is_host_byte(name->labels[at]))
                return false;
            host[to++] = (char)name->labels[at];
        }
    }
    host[to] = '\0';
    return true;
}

/* False: the record is not one of a service. The name must fill the record. */
static bool dns_read_target(const struct dns_message *message, const struct dns_record *record,
                            struct dns_target *target, struct dns_name *name) {
    size_t at = record->data + NUMBERS;
    if (record->data_length <= NUMBERS)
        return false;
    target->priority = (uint16_t)dns_message_16(message, record->data);
    target->weight = (uint16_t)dns_message_16(message, record->data + 2);
    target->port = (uint16_t)dns_message_16(message, record->data + 4);
    return dns_message_name(message, &at, name) && at == record->data + record->data_length;
}

static bool keep_target(void *arg, const struct dns_message *message,
                        const struct dns_record *record) {
    struct dns_targets *targets = arg;
    struct dns_target target;
    struct dns_name name;
    bool good = dns_read_target(message, record, &target, &name);
    if (good && name.length == 0)
        return true; /* "." */
    if (!good || target.port == 0 || !write_host(&name, target.host) ||
        targets->count == targets->room) {
        targets->unusable++;
        return false;
    }
    targets->list[targets->count++] = target;
    return true;
}

void dns_targets_parse(struct dns_targets *targets, const unsigned char *bytes, size_t length) {
    const struct dns_message message = {bytes, length};
    targets->count = targets->unusable = 0;
    targets->kind = dns_message_read(&message, DNS_TYPE_SRV, keep_target, targets, &targets->ttl);
    bool none = targets->kind == DNS_ANSWER_NO_RECORD || targets->kind == DNS_ANSWER_FOUND;
    if (none && targets->count == 0 && targets->unusable > 0)
        targets->kind = DNS_ANSWER_BAD;
    if (targets->kind == DNS_ANSWER_BAD)
        targets->count = 0;
}
