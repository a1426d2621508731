/*
 * The parser of ClientHellos: the bytes of a connection.
 *
 * All at once and in pieces of a byte, the result is the same. What is found fits the bytes: the name is
 * one that the rules for names accept, and it stands in the message; the protocols of ALPN fill
 * their list. A message in records of another size says the same.
 */
#include "base/assert.h"
#include "tls/client_hello.h"

#include <stdio.h>

enum { HEADER = 5, FUZZ_MOST = 65536, PIECES = 512 };

/* What arrives in at most PIECES pieces, of a byte each if that is enough. */
static ssize_t parse_in_pieces(struct client_hello *hello, const char *bytes, size_t size) {
    size_t piece = 1 + size / PIECES;
    ssize_t used = 0;
    for (size_t length = 0; used == 0 && length < size;) {
        length = size - length < piece ? size : length + piece;
        char *copy = slice_dup(slice_make(bytes, length)); /* with a guard of the sanitizer */
        used = client_hello_parse(hello, copy, length);
        free(copy);
    }
    return used;
}

/* Are the members equal that the bytes decide? */
static bool is_equal(const struct client_hello *a, const struct client_hello *b) {
    return a->name_state == b->name_state &&
           slice_equal(client_hello_name(a), client_hello_name(b)) &&
           slice_equal(slice_make(a->alpn, a->alpn_length), slice_make(b->alpn, b->alpn_length)) &&
           a->version == b->version && a->offers_tls12 == b->offers_tls12 &&
           a->offers_tls13 == b->offers_tls13 && a->verifies_ecdsa_p256 == b->verifies_ecdsa_p256 &&
           a->encrypted_hello == b->encrypted_hello && a->has_ticket == b->has_ticket &&
           a->has_early_data == b->has_early_data && a->is_post_quantum == b->is_post_quantum;
}

/* The message without the headers of its records. */
static size_t message_of(char *message, const char *bytes, size_t used) {
    size_t length = 0;
    for (size_t at = 0; at < used;) {
        size_t record = (size_t)(unsigned char)bytes[at + 3] << 8 | (unsigned char)bytes[at + 4];
        memcpy(message + length, bytes + at + HEADER, record);
        length += record;
        at += HEADER + record;
        ASSERT(record > 0 && at <= used);
    }
    return length;
}

static bool contains_nocase(struct slice text, struct slice part) {
    for (size_t i = 0; i + part.length <= text.length; i++)
        if (slice_equal_nocase(slice_make(text.base + i, part.length), part))
            return true;
    return false;
}

static void check_hello(const struct client_hello *hello, struct slice message) {
    char name[SERVER_NAME_MAX];
    struct slice rest = slice_make(hello->alpn, hello->alpn_length), protocol;
    ASSERT((hello->name_state == CLIENT_HELLO_NAME_VALID) == (hello->name_length > 0));
    if (hello->name_length > 0) {
        struct slice found = client_hello_name(hello);
        ASSERT(server_name_put(name, found) == found.length);
        ASSERT(memcmp(name, found.base, found.length) == 0);
        ASSERT(contains_nocase(message, found));
    }
    while (client_hello_next_protocol(&rest, &protocol)) {
        ASSERT(protocol.length > 0 &&
               protocol.base + protocol.length <= hello->alpn + hello->alpn_length);
        ASSERT(client_hello_offers_protocol(hello, protocol));
        ASSERT(contains_nocase(message, protocol));
    }
}

static void check_other_records(const struct client_hello *hello, struct slice message,
                                size_t record) {
    static char bytes[FUZZ_MOST * 6];
    struct client_hello again;
    size_t length = 0;
    for (size_t at = 0; at < message.length; at += record) {
        size_t count = message.length - at < record ? message.length - at : record;
        memcpy(bytes + length, "\x16\x03\x03", 3);
        bytes[length + 3] = (char)(count >> 8);
        bytes[length + 4] = (char)count;
        memcpy(bytes + length + HEADER, message.base + at, count);
        length += HEADER + count;
    }
    if (length > CLIENT_HELLO_MAX)
        return;
    ASSERT(client_hello_parse(&again, bytes, length) == (ssize_t)length);
    ASSERT(is_equal(hello, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char message[FUZZ_MOST];
    const char *bytes = (const char *)data;
    struct client_hello hello, slowly;
    ssize_t used = client_hello_parse(&hello, bytes, size);
    ASSERT(used <= (ssize_t)size && used <= CLIENT_HELLO_MAX);
    ASSERT(parse_in_pieces(&slowly, bytes, size) == used);
    if (used <= 0)
        return 0;
    ASSERT(is_equal(&hello, &slowly));
    struct slice whole = slice_make(message, message_of(message, bytes, (size_t)used));
    check_hello(&hello, whole);
    check_other_records(&hello, whole, 1);
    check_other_records(&hello, whole, 7);
    check_other_records(&hello, whole, 16384);
    return 0;
}
