/*
 * The parser of a ClientHello, the first message of a TLS client (RFC 8446 §4.1.2, RFC 5246
 * §7.4.1.2). Interception asks it what a client wants before it decides what becomes of the
 * connection.
 *
 *     struct client_hello hello;
 *     ssize_t used = client_hello_parse(&hello, buffer, length);
 *     if (used == 0)  -> read more, and try again with all bytes since the connection's first
 *     if (used < 0)   -> the client does not speak TLS, or not correctly
 *     if (hello.name_state == CLIENT_HELLO_NAME_VALID) ...      client_hello_name(&hello)
 *
 * The parser holds no state, allocates nothing, and does not use OpenSSL. The bytes are those of
 * the connection, records included. The message may be split over any number of records, and a
 * record over any number of reads. The result does not depend on how the bytes were split. An error
 * in the records is reported as soon as its bytes are there.
 *
 * These are errors: a record of another type inside the message, an empty record, bytes behind the
 * message in its last record, a hello in SSLv2's form, lengths that do not fit one another, an
 * extension that occurs twice, more than one name, and a pre_shared_key that is not the last
 * extension. Values of GREASE (RFC 8701) are skipped.
 *
 * What a client offers is not checked for sense: OpenSSL, or the origin, does that.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_TLS_CLIENT_HELLO_H
#define RETORT_TLS_CLIENT_HELLO_H

#include "tls/server_name.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    /* A message that needs more bytes than this, with its records, is an error. */
    CLIENT_HELLO_MAX = 65536,
    /* Protocols behind this many bytes of the list are left out. */
    CLIENT_HELLO_ALPN_MAX = 255,
};

enum client_hello_name_state {
    CLIENT_HELLO_NAME_NONE,    /* the client sent no name */
    CLIENT_HELLO_NAME_VALID,   /* `name` has it */
    CLIENT_HELLO_NAME_INVALID, /* the client sent a name that must not be used */
};

struct client_hello {
    /* server_name (RFC 6066 §3), as server_name_put writes it. With ECH it is the name of the
     * outer hello, that of the operator of many sites, and not the site's. */
    enum client_hello_name_state name_state;
    unsigned char name_length; /* 0: not valid, or none */
    char name[SERVER_NAME_MAX];

    /* Application protocols (RFC 7301) in the client's order, each behind a byte with its length;
     * see client_hello_next_protocol. */
    unsigned char alpn_length; /* 0: none */
    char alpn[CLIENT_HELLO_ALPN_MAX];

    uint16_t version;         /* the highest that the client offers: 0x0303 is TLS 1.2 */
    bool offers_tls12;        /* or below TLS 1.2, for clients without supported_versions */
    bool offers_tls13;        /* RFC 8446 §4.2.1 */
    bool verifies_ecdsa_p256; /* false: the client needs a certificate with an RSA key */
    bool encrypted_hello;     /* has encrypted_client_hello, which may be GREASE */
    bool has_ticket;          /* shows a session ticket (RFC 5077) or a pre-shared key */
    bool has_early_data;      /* early data follows the message (RFC 8446 §4.2.10) */
    bool is_post_quantum;     /* offers X25519MLKEM768 */
};

/* >0: the message is complete; its bytes and those of its records. 0: incomplete. <0: this is not a
 * ClientHello. The struct is filled in only when the result is >0. */
ssize_t client_hello_parse(struct client_hello *hello, const char *bytes, size_t length);

static inline struct slice client_hello_name(const struct client_hello *hello) {
    return slice_make(hello->name, hello->name_length);
}

/* Takes the next protocol off the front of *rest. False at the end.
 *
 *     struct slice rest = slice_make(hello->alpn, hello->alpn_length), protocol;
 *     while (client_hello_next_protocol(&rest, &protocol)) ...
 */
bool client_hello_next_protocol(struct slice *rest, struct slice *protocol);
bool client_hello_offers_protocol(const struct client_hello *hello, struct slice protocol);

#endif
