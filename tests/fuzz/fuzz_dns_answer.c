/*
 * The answers of name servers.
 *
 * The first byte chooses the type, the rest is the message. The result does not depend on what lies
 * behind the message; there are as many addresses as it has room for; and an answer that is cut off
 * anywhere has no address that the whole one does not have.
 */
#include "base/assert.h"
#include "base/slice.h"
#include "net/dns_answer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of the exact size, with a guard of the sanitizer behind it. */
static void parse(struct dns_answer *answer, const uint8_t *bytes, size_t length, unsigned type) {
    uint8_t *copy = xmalloc(length + 1);
    memcpy(copy + 1, bytes, length);
    dns_answer_parse(answer, copy + 1, length, type);
    free(copy);
}

static bool has_ip(const struct dns_answer *answer, const unsigned char *ip, size_t size) {
    for (unsigned i = 0; i < answer->count; i++)
        if (memcmp(answer->ips[i], ip, size) == 0)
            return true;
    return false;
}

static void check_part(const struct dns_answer *whole, const struct dns_answer *part, size_t size) {
    for (unsigned i = 0; i < part->count; i++)
        ASSERT(has_ip(whole, part->ips[i], size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dns_answer whole, part;
    if (size == 0)
        return 0;
    unsigned type = data[0] & 1 ? DNS_TYPE_A : DNS_TYPE_AAAA;
    size_t ip = type == DNS_TYPE_A ? 4 : 16;
    parse(&whole, data + 1, size - 1, type);
    ASSERT(whole.count <= DNS_ANSWER_IPS);
    ASSERT((whole.kind == DNS_ANSWER_ADDRESSES) == (whole.count > 0) ||
           whole.kind == DNS_ANSWER_BAD);
    ASSERT(whole.kind == DNS_ANSWER_BAD || whole.ttl <= INT32_MAX);
    for (size_t length = 0; length + 1 < size && length < 300; length++) {
        parse(&part, data + 1, length, type);
        if (part.kind == DNS_ANSWER_ADDRESSES)
            check_part(&whole, &part, ip);
    }
    return 0;
}
