#include "net/dns_targets.h"

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
