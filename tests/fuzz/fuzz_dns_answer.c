/*
 * The answers of name servers.
 *
 * The first byte chooses the type, the rest is the message. The result does not depend on what lies
 * behind the message; there are as many addresses as it has room for; and an answer that is cut off
 * anywhere has no address that the whole one does not have. The same holds for the servers of a
 * service, whose names never have a byte that a URL, a header or a log could take for another one.
 */
#include "base/assert.h"
#include "base/slice.h"
#include "net/dns_message.h"

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

static void fuzz_addresses(const uint8_t *data, size_t size, unsigned type) {
    struct dns_answer whole, part;
    size_t ip = type == DNS_TYPE_A ? 4 : 16;
    parse(&whole, data, size, type);
    ASSERT(whole.count <= DNS_ANSWER_IPS);
    ASSERT((whole.kind == DNS_ANSWER_FOUND) == (whole.count > 0) || whole.kind == DNS_ANSWER_BAD);
    ASSERT(whole.kind == DNS_ANSWER_BAD || whole.ttl <= INT32_MAX);
    for (size_t length = 0; length < size && length < 300; length++) {
        parse(&part, data, length, type);
        if (part.kind == DNS_ANSWER_FOUND)
            check_part(&whole, &part, ip);
    }
}

enum { ROOM = 20 };

struct found {
    struct dns_target list[ROOM];
    struct dns_targets targets;
};

static void parse_targets(struct found *found, const uint8_t *bytes, size_t length) {
    uint8_t *copy = xmalloc(length + 1);
    memset(found, 0, sizeof *found);
    found->targets.list = found->list;
    found->targets.room = ROOM;
    memcpy(copy + 1, bytes, length);
    dns_targets_parse(&found->targets, copy + 1, length);
    free(copy);
}

static void check_target(const struct dns_target *target) {
    size_t length = strlen(target->host);
    ASSERT(target->port != 0 && length > 0 && length < DNS_NAME_BYTES);
    ASSERT(strspn(target->host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == length);
    ASSERT(strstr(target->host, "..") == NULL && target->host[0] != '.' &&
           target->host[length - 1] != '.');
}

static void fuzz_targets(const uint8_t *data, size_t size) {
    struct found whole, part;
    parse_targets(&whole, data, size);
    ASSERT(whole.targets.count <= ROOM);
    ASSERT(whole.targets.kind == DNS_ANSWER_FOUND || whole.targets.count == 0);
    ASSERT(whole.targets.ttl <= INT32_MAX);
    for (unsigned i = 0; i < whole.targets.count; i++)
        check_target(&whole.list[i]);
    for (size_t length = 0; length < size && length < 300; length++) {
        parse_targets(&part, data, length);
        for (unsigned i = 0; i < part.targets.count; i++)
            check_target(&part.list[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    if (data[0] >= 'a')
        fuzz_targets(data + 1, size - 1);
    else
        fuzz_addresses(data + 1, size - 1, data[0] & 1 ? DNS_TYPE_A : DNS_TYPE_AAAA);
    return 0;
}
