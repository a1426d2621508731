/*
 * A TLS stream and a peer made of a bare SSL, with a socket between them. The test moves the bytes,
 * so it decides how many arrive at a time.
 *
 *     struct tls_lab lab;
 *     tls_lab_open(&lab, TLS_LAB_SERVER, TLS1_3_VERSION);   lab.stream is the server's side
 *     tls_lab_handshake(&lab, 1);                           one byte at a time
 *     SSL_write(lab.peer, "hello", 5);
 *     tls_lab_carry(&lab, 3);                               3 bytes of the peer reach the stream
 *     tls_lab_collect(&lab);                                all bytes of the stream reach the peer
 *     tls_lab_close(&lab);
 */
#ifndef RETORT_TESTS_UNIT_PROXY_TLS_LAB_H
#define RETORT_TESTS_UNIT_PROXY_TLS_LAB_H

#include "tls/client.h"
#include "tls/server.h"
#include "tls/stream.h"

#include <openssl/ssl.h>

/* The side of the stream. TLS_LAB_KERNEL: a server that lets the kernel encrypt. */
enum tls_lab_side { TLS_LAB_SERVER, TLS_LAB_CLIENT, TLS_LAB_KERNEL };

struct tls_lab {
    struct tls_stream *stream;
    struct tls_server *server; /* one of these is NULL */
    struct tls_client *client;
    struct ticket_keys *tickets; /* of the server; NULL: none */
    int fd;                      /* of the stream */
    int other;                   /* of the peer */
    SSL_CTX *peer_context;
    SSL *peer;
    BIO *to_peer, *from_peer; /* in memory */
    X509 *certificate;
    EVP_PKEY *key;
};

/* version: the only one that the peer speaks. */
void tls_lab_open(struct tls_lab *lab, enum tls_lab_side side, int version);
void tls_lab_close(struct tls_lab *lab);
/* Carries at most `most` bytes of the peer to the stream. Returns how many there were. */
size_t tls_lab_carry(struct tls_lab *lab, size_t most);
/* Tells the stream that bytes are there, or the end: the loop does that otherwise. */
void tls_lab_note_event(struct tls_lab *lab, bool hangup);
/* Carries what the stream has sent to the peer. Returns how many bytes there were. */
size_t tls_lab_collect(struct tls_lab *lab);
/* Completes the handshake of both sides, `step` bytes of the peer at a time. */
void tls_lab_handshake(struct tls_lab *lab, size_t step);
/* The bytes of the peer that wait to be carried. */
size_t tls_lab_waiting(const struct tls_lab *lab);

#endif
