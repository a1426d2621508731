/*
 * TLS to clients: what the streams of one listener share in one worker, under one snapshot of the
 * settings.
 *
 *     struct tls_server *server = tls_server_new(&(struct tls_server_settings){
 *         .policy = "127.0.0.1:443", .certificates = set, .tickets = keys});
 *     if (tls_server_error(server)[0] != '\0') ...
 *     status = connection_accept_secure(connection, server, SLICE(""));
 *     tls_server_release(&server);                    the streams keep it for as long as they live
 *
 * tls_server_new always returns a server; an error in its settings makes the first handshake fail.
 *
 * What a client gets, unless the settings say something else: TLS 1.2 or 1.3; for 1.2 only key
 * exchange with ECDHE and ciphers with AEAD; the server's order of ciphers; the certificate for the
 * name that it asks for (SNI), or the default one; HTTP/2 or HTTP/1.1 by ALPN, and an alert
 * (no_application_protocol) if it knows nothing that we speak; one ticket. No renegotiation, no
 * compression, no early data.
 *
 * A ticket is resumed only for the same name, under the same policy: the session id context holds a
 * digest of everything that decides whom the connection trusts. It is compared before a session
 * goes on. A session of a client certificate that has expired does not go on either.
 *
 * Threads: a server and its streams belong to one thread. Ownership: counted; each stream counts.
 */
#ifndef RETORT_TLS_SERVER_H
#define RETORT_TLS_SERVER_H

#include "tls/certificate_set.h"
#include "tls/client_authority.h"
#include "tls/ticket_keys.h"
#include "tls/trust.h"

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

enum client_certificate {
    CLIENT_CERTIFICATE_OFF,
    CLIENT_CERTIFICATE_OPTIONAL, /* verified if the client shows one */
    CLIENT_CERTIFICATE_REQUIRED
};

/* The server takes references, and copies the texts. */
struct tls_server_settings {
    const char *policy; /* tickets of one policy are not resumed under another: the listener's
                           address; NULL: "" */
    struct certificate_set *certificates; /* NULL: each stream is shown its own */
    struct ticket_keys *tickets;          /* NULL: no tickets */
    bool ktls;                            /* the kernel encrypts, where it can */
    bool http2;                           /* HTTP/2 is offered, before HTTP/1.1 */
    enum tls_version min_version;
    const char *ciphers, *ciphersuites, *groups; /* as OpenSSL writes them; NULL: see above */
    enum client_certificate client_certificate;
    struct client_authority *client_authority; /* unless client_certificate is off */
    bool staples; /* OCSP responses are shown that the certificates have (the part pki) */
    bool refuse_unknown_names; /* that no certificate is for, in place of the default one */
};

/* Why a handshake failed. */
enum tls_failure {
    TLS_FAILURE_NONE,
    TLS_FAILURE_CLOSED,      /* the client went away */
    TLS_FAILURE_ALERT,       /* the client refused, for example our certificate */
    TLS_FAILURE_CERTIFICATE, /* the client's certificate is missing or not trusted */
    TLS_FAILURE_MISMATCH,    /* no version, cipher, protocol or name in common */
    TLS_FAILURE_OTHER        /* malformed messages, and our own errors */
};

struct tls_server;

struct tls_server *tls_server_new(const struct tls_server_settings *settings);
struct tls_server *tls_server_take(struct tls_server *server);
void tls_server_release(struct tls_server **serverp);
/* A sentence that says why the server can't be used; empty: it can. */
const char *tls_server_error(const struct tls_server *server);

/* For streams: a new SSL of the server. NULL: see tls_server_error. */
SSL *tls_server_open(struct tls_server *server);
/* For streams: the kind of OpenSSL's last failure in a handshake. */
enum tls_failure tls_server_failure(void);
/* For streams: why the client's certificate is not accepted; NULL: it is about something else. */
const char *tls_server_explain(SSL *ssl);

#endif
