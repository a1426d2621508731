#include "net/dns_answer.h"

#include <string.h>

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
