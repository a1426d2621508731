/*
 * The headers of the PROXY protocol: the bytes of a connection.
 *
 * Byte by byte the result is the same as at once, and bytes behind the header change nothing. A
 * header with addresses that is written again, in either version, has the same addresses.
 */
#include "base/assert.h"
#include "proxy_protocol/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of the exact size, with a guard of the sanitizer behind it. */
static ssize_t parse(struct proxy_header *header, const char *bytes, size_t length) {
    char *copy = slice_dup(slice_make(bytes, length));
    ssize_t used = proxy_header_parse(header, copy, length);
    free(copy);
    return used;
}

static void check_same(const struct proxy_header *a, const struct proxy_header *b) {
    ASSERT(a->has_addresses == b->has_addresses && a->version == b->version);
    if (a->has_addresses)
        ASSERT(address_equal(&a->source, &b->source) &&
               address_equal(&a->destination, &b->destination));
}

static void check_written(const struct proxy_header *header, enum proxy_header_version version) {
    struct proxy_header again;
    char out[PROXY_HEADER_WRITTEN];
    size_t length = proxy_header_write(version, &header->source, &header->destination, out);
    ASSERT(parse(&again, out, length) == (ssize_t)length);
    ASSERT(again.has_addresses && address_equal(&again.source, &header->source) &&
           address_equal(&again.destination, &header->destination));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct proxy_header whole, part;
    const char *bytes = (const char *)data;
    ssize_t used = parse(&whole, bytes, size);
    ASSERT(used >= -1 && used <= (ssize_t)size && used <= PROXY_HEADER_MAX);
    ASSERT(used != 0 || size < PROXY_HEADER_MAX);
    for (size_t length = 0; length < size && length <= 600; length++) {
        ssize_t early = parse(&part, bytes, length);
        if (early == 0)
            continue;
        ASSERT(early == used);
        if (used > 0)
            check_same(&whole, &part);
        break;
    }
    if (used <= 0)
        return 0;
    ASSERT(parse(&part, bytes, (size_t)used) == used);
    check_same(&whole, &part);
    if (whole.has_addresses) {
        check_written(&whole, PROXY_HEADER_V1);
        check_written(&whole, PROXY_HEADER_V2);
    }
    return 0;
}
