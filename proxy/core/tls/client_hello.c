#include "tls/client_hello.h"

enum {
    RECORD_HEADER = 5,
    RECORD_HANDSHAKE = 22,
    RECORD_MAX = 1 << 14, /* RFC 8446 §5.1 */
    MESSAGE_HEADER = 4,
    MESSAGE_CLIENT_HELLO = 1,
    MAJOR_VERSION = 3,
    RANDOM_LENGTH = 32,
    SESSION_ID_MAX = 32,
};

enum {
    VERSION_TLS12 = 0x0303,
    VERSION_TLS13 = 0x0304,
};

/* https://www.iana.org/assignments/tls-extensiontype-values */
enum {
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_SUPPORTED_GROUPS = 10,
    EXTENSION_SIGNATURE_ALGORITHMS = 13,
    EXTENSION_ALPN = 16,
    EXTENSION_SESSION_TICKET = 35,
    EXTENSION_PRE_SHARED_KEY = 41,
    EXTENSION_EARLY_DATA = 42,
    EXTENSION_SUPPORTED_VERSIONS = 43,
    EXTENSION_ENCRYPTED_HELLO = 0xfe0d,
    EXTENSION_NUMBERS = 65536,
};

enum { NAME_TYPE_HOST = 0 };
enum { GROUP_P256 = 23, GROUP_X25519_MLKEM768 = 0x11ec };
enum { ECDSA_SHA256 = 0x0403, ECDSA_SHA384 = 0x0503, ECDSA_SHA512 = 0x0603 };

/* Reads the bytes of a message, and steps over the headers of its records. The records are known to
 * be good and to hold `left` bytes. A reader of a part of the message is a copy with fewer bytes
 * left. */
struct reader {
    const unsigned char *at;
    size_t record_left;
    size_t left;
};

static size_t number_16(const unsigned char *at) {
    return (size_t)at[0] << 8 | at[1];
}

static unsigned char read_byte(struct reader *reader) {
    if (reader->record_left == 0) {
        reader->record_left = number_16(reader->at + 3);
        reader->at += RECORD_HEADER;
    }
    reader->record_left--;
    reader->left--;
    return *reader->at++;
}

static bool read_integer(struct reader *reader, unsigned bytes, size_t *number) {
    if (reader->left < bytes)
        return false;
    for (*number = 0; bytes > 0; bytes--)
        *number = *number << 8 | read_byte(reader);
    return true;
}

static bool skip(struct reader *reader, size_t count) {
    if (reader->left < count)
        return false;
    reader->left -= count;
    while (count > reader->record_left) {
        count -= reader->record_left;
        reader->at += reader->record_left;
        reader->record_left = number_16(reader->at + 3);
        reader->at += RECORD_HEADER;
    }
    reader->at += count;
    reader->record_left -= count;
    return true;
}

/* Reads a vector (RFC 8446 §3.4): a length of that many bytes, and what has that length. */
static bool read_vector(struct reader *reader, unsigned bytes, struct reader *vector) {
    size_t length;
    if (!read_integer(reader, bytes, &length) || reader->left < length)
        return false;
    *vector = *reader;
    vector->left = length;
    return skip(reader, length);
}

/* A vector of numbers of two bytes, at least one, which is all that `extension` contains. */
static bool read_code_points(struct reader *extension, unsigned length_bytes,
                             struct reader *numbers) {
    return read_vector(extension, length_bytes, numbers) && extension->left == 0 &&
           numbers->left >= 2 && numbers->left % 2 == 0;
}

/* 0x0a0a, 0x1a1a, ... 0xfafa */
static bool is_grease(size_t number) {
    return (number & 0x0f0f) == 0x0a0a && number >> 8 == (number & 0xff);
}

static bool next_code_point(struct reader *numbers, size_t *number) {
    while (read_integer(numbers, 2, number))
        if (!is_grease(*number))
            return true;
    return false;
}

/* What several extensions together say. */
struct offers {
    bool ecdsa_suite; /* of TLS 1.2 */
    bool has_groups, p256;
    bool ecdsa_sha256, ecdsa_any_hash;
    bool has_versions;
};

static bool read_server_name(struct client_hello *hello, struct reader *extension) {
    struct reader list, name;
    size_t type;
    char text[SERVER_NAME_MAX + 1]; /* with the dot at the end */
    if (!read_vector(extension, 2, &list) || extension->left > 0 ||
        !read_integer(&list, 1, &type) || type != NAME_TYPE_HOST || !read_vector(&list, 2, &name) ||
        list.left > 0 || name.left == 0)
        return false;
    size_t length = name.left;
    hello->name_state = CLIENT_HELLO_NAME_INVALID;
    if (length > sizeof text)
        return true;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)read_byte(&name);
    hello->name_length = (unsigned char)server_name_put(hello->name, slice_make(text, length));
    if (hello->name_length > 0)
        hello->name_state = CLIENT_HELLO_NAME_VALID;
    return true;
}

static bool read_alpn(struct client_hello *hello, struct reader *extension) {
    struct reader list, protocol;
    bool has_room = true;
    if (!read_vector(extension, 2, &list) || extension->left > 0 || list.left == 0)
        return false;
    while (list.left > 0) {
        if (!read_vector(&list, 1, &protocol) || protocol.left == 0)
            return false;
        has_room = has_room && hello->alpn_length + 1 + protocol.left <= CLIENT_HELLO_ALPN_MAX;
        if (!has_room)
            continue;
        hello->alpn[hello->alpn_length++] = (char)protocol.left;
        while (protocol.left > 0)
            hello->alpn[hello->alpn_length++] = (char)read_byte(&protocol);
    }
    return true;
}

static bool read_versions(struct client_hello *hello, struct reader *extension) {
    struct reader versions;
    size_t version;
    if (!read_code_points(extension, 1, &versions))
        return false;
    hello->version = 0;
    hello->offers_tls12 = false;
    while (next_code_point(&versions, &version)) {
        hello->offers_tls12 |= version == VERSION_TLS12;
        hello->offers_tls13 |= version == VERSION_TLS13;
        if (version > hello->version && version >> 8 == MAJOR_VERSION)
            hello->version = (uint16_t)version;
    }
    return true;
}

static bool read_groups(struct client_hello *hello, struct offers *offers,
                        struct reader *extension) {
    struct reader groups;
    size_t group;
    if (!read_code_points(extension, 2, &groups))
        return false;
    offers->has_groups = true;
    while (next_code_point(&groups, &group)) {
        offers->p256 |= group == GROUP_P256;
        hello->is_post_quantum |= group == GROUP_X25519_MLKEM768;
    }
    return true;
}

static bool read_signature_algorithms(struct offers *offers, struct reader *extension) {
    struct reader algorithms;
    size_t algorithm;
    if (!read_code_points(extension, 2, &algorithms))
        return false;
    while (next_code_point(&algorithms, &algorithm)) {
        offers->ecdsa_sha256 |= algorithm == ECDSA_SHA256;
        offers->ecdsa_any_hash |=
            algorithm == ECDSA_SHA256 || algorithm == ECDSA_SHA384 || algorithm == ECDSA_SHA512;
    }
    return true;
}

static bool read_extension(struct client_hello *hello, struct offers *offers, size_t type,
                           struct reader *extension) {
    switch (type) {
    case EXTENSION_SERVER_NAME: return read_server_name(hello, extension);
    case EXTENSION_ALPN: return read_alpn(hello, extension);
    case EXTENSION_SUPPORTED_VERSIONS: return read_versions(hello, extension);
    case EXTENSION_SUPPORTED_GROUPS: return read_groups(hello, offers, extension);
    case EXTENSION_SIGNATURE_ALGORITHMS: return read_signature_algorithms(offers, extension);
    case EXTENSION_ENCRYPTED_HELLO: hello->encrypted_hello = true; return true;
    case EXTENSION_SESSION_TICKET: hello->has_ticket |= extension->left > 0; return true;
    case EXTENSION_PRE_SHARED_KEY: hello->has_ticket = true; return true;
    case EXTENSION_EARLY_DATA: hello->has_early_data = true; return true;
    default: return true;
    }
}

static bool read_extensions(struct client_hello *hello, struct offers *offers,
                            struct reader *message) {
    unsigned char seen[EXTENSION_NUMBERS / 8] = {0};
    struct reader extensions, extension;
    size_t type;
    if (message->left == 0)
        return true; /* a client from before extensions (RFC 5246 §7.4.1.2) */
    if (!read_vector(message, 2, &extensions) || message->left > 0)
        return false;
    while (extensions.left > 0) {
        if (!read_integer(&extensions, 2, &type) || !read_vector(&extensions, 2, &extension))
            return false;
        if ((seen[type / 8] >> type % 8 & 1) != 0)
            return false;
        seen[type / 8] |= (unsigned char)(1u << type % 8);
        if (!read_extension(hello, offers, type, &extension))
            return false;
        if (type == EXTENSION_PRE_SHARED_KEY && extensions.left > 0)
            return false; /* RFC 8446 §4.2.11 */
    }
    return true;
}

/* ECDHE_ECDSA with AES-GCM, ChaCha20-Poly1305 or AES-CCM. Retort accepts no suites with CBC. */
static bool is_ecdsa_suite(size_t suite) {
    return suite == 0xc02b || suite == 0xc02c || suite == 0xcca9 ||
           (suite >= 0xc0ac && suite <= 0xc0af);
}

static bool read_suites(struct offers *offers, struct reader *message) {
    struct reader suites;
    size_t suite;
    if (!read_vector(message, 2, &suites) || suites.left < 2 || suites.left % 2 != 0)
        return false;
    while (next_code_point(&suites, &suite))
        offers->ecdsa_suite |= is_ecdsa_suite(suite);
    return true;
}

/* A version is chosen before the certificate, and TLS 1.3 is chosen when it is offered. There
 * 0x0403 means P-256 with SHA-256 (RFC 8446 §4.2.3). In TLS 1.2 the curve stands in the groups, and
 * the suite decides, too (RFC 8422 §5.1.1). */
static bool verifies_ecdsa_p256(const struct client_hello *hello, const struct offers *offers) {
    if (hello->offers_tls13)
        return offers->ecdsa_sha256;
    return offers->ecdsa_suite && offers->ecdsa_any_hash && (offers->p256 || !offers->has_groups);
}

static bool read_message(struct client_hello *hello, struct reader message) {
    struct offers offers = {false};
    struct reader session_id, compressions;
    size_t version;
    *hello = (struct client_hello){.name_state = CLIENT_HELLO_NAME_NONE};
    if (!read_integer(&message, 2, &version) || version >> 8 != MAJOR_VERSION)
        return false;
    hello->version = (uint16_t)(version > VERSION_TLS12 ? VERSION_TLS12 : version);
    hello->offers_tls12 = true;
    if (!skip(&message, RANDOM_LENGTH) || !read_vector(&message, 1, &session_id) ||
        session_id.left > SESSION_ID_MAX || !read_suites(&offers, &message) ||
        !read_vector(&message, 1, &compressions) || compressions.left == 0 ||
        !read_extensions(hello, &offers, &message))
        return false;
    hello->verifies_ecdsa_p256 = verifies_ecdsa_p256(hello, &offers);
    return true;
}

/* Is what is there of a record's header good? Its length counts only when it is complete. */
static bool record_is_good(const unsigned char *header, size_t length) {
    return header[0] == RECORD_HANDSHAKE && (length < 2 || header[1] == MAJOR_VERSION) &&
           (length < RECORD_HEADER ||
            (number_16(header + 3) > 0 && number_16(header + 3) <= RECORD_MAX));
}

/* The records of a message as far as they are there. */
struct records {
    size_t message_length; /* with its header; unknown yet: 0 */
    size_t found;          /* bytes of the message */
    unsigned char header[MESSAGE_HEADER];
};

/* Adds what is there of a record. False: this is no ClientHello. */
static bool add_record(struct records *records, const unsigned char *bytes, size_t length,
                       size_t record_length) {
    size_t i = 0;
    for (; records->found + i < MESSAGE_HEADER && i < length; i++)
        records->header[records->found + i] = bytes[i];
    records->found += length;
    if (records->found > 0 && records->header[0] != MESSAGE_CLIENT_HELLO)
        return false;
    if (records->found >= MESSAGE_HEADER)
        records->message_length =
            MESSAGE_HEADER + ((size_t)records->header[1] << 16) + number_16(records->header + 2);
    return records->message_length == 0 ||
           (records->message_length <= CLIENT_HELLO_MAX &&
            records->found - length + record_length <= records->message_length);
}

/* Finds where the records of the message end. Results as those of client_hello_parse. */
static ssize_t find_end(const unsigned char *bytes, size_t length) {
    struct records records = {.found = 0};
    size_t at = 0;
    while (at < length) {
        size_t there = length - at;
        if (!record_is_good(bytes + at, there))
            return -1;
        if (there < RECORD_HEADER)
            return 0;
        size_t record_length = number_16(bytes + at + 3);
        at += RECORD_HEADER;
        if (at + record_length > CLIENT_HELLO_MAX)
            return -1;
        there = length - at < record_length ? length - at : record_length;
        if (!add_record(&records, bytes + at, there, record_length))
            return -1;
        at += there;
        if (records.message_length > 0 && records.found == records.message_length)
            return (ssize_t)at;
    }
    return 0;
}

ssize_t client_hello_parse(struct client_hello *hello, const char *bytes, size_t length) {
    const unsigned char *first = (const unsigned char *)bytes;
    struct client_hello found;
    ssize_t end = find_end(first, length);
    if (end <= 0)
        return end;
    struct reader message = {.at = first, .left = MESSAGE_HEADER};
    size_t type_and_length;
    if (!read_integer(&message, MESSAGE_HEADER, &type_and_length))
        return -1;
    message.left = type_and_length & 0xffffff;
    if (!read_message(&found, message))
        return -1;
    *hello = found;
    return end;
}

bool client_hello_next_protocol(struct slice *rest, struct slice *protocol) {
    if (rest->length == 0)
        return false;
    size_t length = (unsigned char)rest->base[0];
    *protocol = slice_make(rest->base + 1, length);
    *rest = slice_make(rest->base + 1 + length, rest->length - 1 - length);
    return true;
}

bool client_hello_offers_protocol(const struct client_hello *hello, struct slice protocol) {
    struct slice rest = slice_make(hello->alpn, hello->alpn_length), offered;
    while (client_hello_next_protocol(&rest, &offered))
        if (slice_equal(offered, protocol))
            return true;
    return false;
}
